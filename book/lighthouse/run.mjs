// node run.mjs CHROME ADDRESS…: Lighthouse's mobile preset on each page, one line of JSON a page.
import lighthouse from "lighthouse";
import * as chromeLauncher from "chrome-launcher";

const [chromePath, ...addresses] = process.argv.slice(2);
const chromeFlags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const chrome = await chromeLauncher.launch({ chromePath, chromeFlags });
try {
  for (const address of addresses) {
    const { lhr } = await lighthouse(address, { port: chrome.port, output: "json", logLevel: "error" });
    const scores = Object.fromEntries(Object.values(lhr.categories).map(({ id, score }) => [id, Math.round(score * 100)]));
    const faults = Object.values(lhr.categories).flatMap(({ auditRefs }) => auditRefs
      .filter(({ id, weight }) => weight > 0 && lhr.audits[id].score !== null && lhr.audits[id].score < 0.9)
      .map(({ id }) => `${id} ${lhr.audits[id].displayValue ?? ""}`.trim()));
    const value = (id) => lhr.audits[id]?.numericValue ?? null;
    console.log(JSON.stringify({
      address, scores, faults, error: lhr.runtimeError?.message ?? null,
      bytes: value("total-byte-weight"), paint: value("first-contentful-paint"), largest: value("largest-contentful-paint"),
      shift: value("cumulative-layout-shift"), blocked: value("total-blocking-time"),
    }));
  }
} finally {
  await chrome.kill();
}
