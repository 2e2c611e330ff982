// node firefox.mjs FIREFOX ORIGIN PATH…: each page in Firefox on a phone, its live figures and its lab moved;
// one line of JSON a page. Playwright drives only a Firefox of its own; this is the one that readers have.
import puppeteer from "puppeteer-core";

const [executablePath, origin, ...paths] = process.argv.slice(2);
const browser = await puppeteer.launch({ browser: "firefox", executablePath, headless: true });
const page = await browser.newPage();
await page.setViewport({ width: 390, height: 844 });
let complaints = [];
page.on("console", (message) => ["error", "warn"].includes(message.type()) && complaints.push(message.text()));
page.on("pageerror", (error) => complaints.push(error.message));
page.on("response", (answer) => answer.status() >= 400 && complaints.push(`${answer.status()} ${answer.url()}`));
page.on("request", (asked) => asked.url().startsWith(origin) || asked.url().startsWith("data:")
  || complaints.push(`asks for ${asked.url()}`));
try {
  for (const path of paths) {
    complaints = [];
    await page.goto(`${origin}/${path}`, { waitUntil: "load" });
    const figures = await page.$$(".mha-explore");
    const moved = [];
    for (const figure of figures) {
      const slider = await figure.$("input[type=range]");
      const shown = () => figure.evaluate((f) => f.dataset.shown ?? "");
      const before = await shown();
      await slider.focus();
      await page.keyboard.press("ArrowRight");
      for (let tries = 0; tries < 50 && (await shown()) === before; tries++) await new Promise((go) => setTimeout(go, 100));
      moved.push((await shown()) !== before);
    }
    const lab = await page.$("figure.mha-lab");
    let step = null;
    if (lab) {
      const where = () => lab.evaluate((l) => [...l.querySelectorAll("input[type=range]")].map((i) => i.value).join());
      const before = await where();
      await (await lab.$("input[type=range]")).focus();
      await page.keyboard.press("ArrowLeft");
      await page.keyboard.press("ArrowLeft");
      step = (await where()) !== before && await lab.evaluate((l) => l.querySelectorAll("canvas, svg").length > 0);
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    const broken = await page.evaluate(() => [...document.fonts].filter((f) => f.status === "error").length);
    console.log(JSON.stringify({ path, complaints, moved, step, wide, broken }));
  }
} finally {
  await browser.close();
}
