// Live figures on a page without a kernel: native sliders flip through frames that the build drew.
// A frame is fetched when it is first asked for; the page keeps its size.

const loaded = new Map(); // address → promise of a decoded image

function load(src) {
  if (!loaded.has(src)) {
    const image = new Image();
    image.src = src;
    loaded.set(src, image.decode().then(() => src, (error) => { loaded.delete(src); throw error; }));
  }
  return loaded.get(src);
}

// The place of a combination in the list of frames: the last choice turns fastest.
function place(choices, at) {
  return choices.reduce((sum, choice, i) => sum * choice.values.length + at[i], 0);
}

function bringToLife(root) {
  const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const image = root.querySelector(".mha-frame img");
  const status = root.querySelector(".mha-status");
  const inputs = data.choices.map((choice) => root.querySelector(`[data-choice="${CSS.escape(choice.name)}"] input`));
  const refusal = document.createElement("p");
  refusal.className = "mha-refusal";
  refusal.hidden = true;
  root.querySelector(".mha-frame").append(refusal);
  let asked = 0;

  async function show() {
    const turn = ++asked;
    const at = inputs.map((input) => Number(input.value));
    const values = data.choices.map((choice, i) => choice.values[at[i]]);
    inputs.forEach((input, i) => {
      input.setAttribute("aria-valuetext", values[i]);
      input.nextElementSibling.value = values[i];
    });
    const said = data.choices.map((choice, i) => `${choice.name} = ${values[i]}`).join(", ");
    const frame = data.frames[place(data.choices, at)];
    let why = frame.error && [data.impossible, " ", Object.assign(document.createElement("code"), { textContent: frame.error })];
    if (!why) {
      root.setAttribute("aria-busy", "true");
      const came = await load(frame.src).then(() => true, () => false);
      if (turn !== asked) return; // the reader has moved on
      if (!came) why = [data.missing];
      else Object.assign(image, { src: frame.src, alt: frame.alt });
    }
    root.removeAttribute("aria-busy");
    refusal.replaceChildren(...why || []);
    refusal.hidden = !why;
    image.classList.toggle("mha-away", Boolean(why)); // no picture beside values that are not its own
    root.dataset.shown = said;
    status.textContent = `${said}: ${why ? refusal.textContent : frame.alt}`;
  }

  inputs.forEach((input) => input.addEventListener("input", show));
  root.dataset.live = "yes";
  if (inputs.some((input) => input.value !== input.defaultValue)) show(); // the browser kept a reader's choice over a reload
}

document.querySelectorAll(".mha-explore").forEach(bringToLife);

// The section that the reader is in; both languages call it the same.
function sectionInView() {
  const begun = [...document.querySelectorAll("article section[id]")].filter((s) => s.getBoundingClientRect().top < innerHeight / 3);
  return begun.length > 1 ? begun[begun.length - 1].id : "";
}

// The language switch stays in this tab, keeps the reader's place in the page, and the choice is remembered.
document.querySelectorAll("a[class*='switch-to-']").forEach((link) => {
  const language = link.className.match(/switch-to-(\w+)/)[1];
  link.removeAttribute("target");
  link.lang = language;
  link.addEventListener("click", () => {
    link.hash = sectionInView();
    link.search = location.search;
    try { localStorage.setItem("mha-language", language); } catch { /* private mode */ }
  });
});

// Words that theme and tools write into every page in English, whatever its language.
const ZH = {
  "Main": "主目录", "Page": "本页目录", "Toggle primary sidebar": "打开或收起目录",
  "Toggle secondary sidebar": "打开或收起本页目录", "Toggle hidden content": "展开或收起",
};
if (document.documentElement.lang.startsWith("zh")) {
  addEventListener("load", () => document.querySelectorAll("[title], [aria-label]").forEach((element) => {
    for (const name of ["title", "aria-label"]) {
      const word = ZH[element.getAttribute(name)];
      if (word) element.setAttribute(name, word);
    }
  }));
}
