// node firefox.mjs FIREFOX ORIGIN PATH…: each page in Firefox on a phone, its live figures and its lab moved;
// one line of JSON a page. Playwright drives only a Firefox of its own; this is the one that readers have.
import puppeteer from "puppeteer-core";

const [executablePath, origin, ...paths] = process.argv.slice(2);
const browser = await puppeteer.launch({ browser: "firefox", executablePath, headless: true, timeout: 120_000, protocolTimeout: 300_000 });
const page = await browser.newPage();
await page.setViewport({ width: 390, height: 844 });
let complaints = [];
page.on("console", (message) => ["error", "warn"].includes(message.type()) && complaints.push(message.text()));
page.on("pageerror", (error) => complaints.push(error.message));
page.on("response", (answer) => answer.status() >= 400 && complaints.push(`${answer.status()} ${answer.url()}`));
page.on("request", (asked) => asked.url().startsWith(origin) || asked.url().startsWith("data:")
  || complaints.push(`asks for ${asked.url()}`));

// On a busy machine a page may answer late, and a key may come before it listens: three presses, 8 seconds each.
async function moves(slider, key, shown) {
  const before = await shown();
  for (let tries = 0; tries < 240; tries++) {
    if (tries % 80 === 0) { await slider.focus(); await page.keyboard.press(key); }
    if ((await shown()) !== before) return true;
    await new Promise((go) => setTimeout(go, 100));
  }
  return false;
}

try {
  for (const path of paths) {
    complaints = [];
    await page.goto(`${origin}/${path}`, { waitUntil: "load", timeout: 120_000 });
    const moved = [];
    for (const figure of await page.$$(".mha-explore")) {
      const slider = await figure.$("input[type=range]");
      moved.push(await moves(slider, await slider.evaluate((s) => (s.value === s.max ? "ArrowLeft" : "ArrowRight")), () => figure.evaluate((f) => f.dataset.shown ?? "")));
    }
    const lab = await page.$("figure.mha-lab");
    let step = null;
    if (lab) {
      const sliders = () => lab.evaluate((l) => [...l.querySelectorAll("input[type=range]")].map((i) => i.value).join());
      step = await moves(await lab.$("input[type=range]"), "ArrowLeft", sliders)
        && await lab.evaluate((l) => l.querySelectorAll("canvas, svg").length > 0);
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    const broken = await page.evaluate(() => [...document.fonts].filter((f) => f.status === "error").length);
    console.log(JSON.stringify({ path, complaints, moved, step, wide, broken }));
  }
} finally {
  await browser.close();
}
