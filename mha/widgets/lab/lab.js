import { BREAKS, DEFAULT, NAMES, STEPS, WIDTHS, clean, code, fromAddress, parameters, run, toAddress, whence } from "./arithmetic.js";

// The lab's drawing: one picture of the five steps on a canvas, its controls around it, and over it one
// invisible grid a tensor, so that every number is also reachable by keyboard and read aloud.
// Numbers come from arithmetic.js alone; nothing here computes attention.

const KEYS = Object.keys(DEFAULT);
const LAST = STEPS.length - 1;

// ── Tensors ──────────────────────────────────────────────────────────────────────────────────────

const byHead = (name) => /_heads$|^(raw|scores|weights|heads|contributions)$/.test(name);
const isWeight = (name) => name.startsWith("W_");
const perPair = (name) => /^(raw|scores|weights)$/.test(name);
const columns = (tensor) => tensor.shape[tensor.shape.length - 1];
const flat = (tensor, index) => index.reduce((sum, at, i) => sum * tensor.shape[i] + at, 0);
const shape = (tensor) => `(${tensor.shape.join(", ")})`;
const symbol = (name) => (NAMES[name] ? NAMES[name].symbol : name);
const clip = (n, low, high) => Math.min(Math.max(n, low), high);

function number(value, digits = 2) {
  if (value === -Infinity) return "−∞";
  return value.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−");
}

function largest(tensor) {
  if (!tensor.largest) {
    let top = 0;
    for (const value of tensor.data) if (value !== -Infinity && Math.abs(value) > top) top = Math.abs(value);
    tensor.largest = top || 1;
  }
  return tensor.largest;
}

// Pixels i to end − 1: of 512 shades, the first for −top and the last for top. Looking up is faster than reckoning.
function dye(px, i, end, data, top, shades) {
  for (const strong = 255 / top; i < end; i++) px[i] = shades[clip(data[i] * strong + 256, 1, 511) | 0];
}

// Tensors that are compared share one scale of shades: what shrinks also pales.
const SCALE_OF = { Q_heads: "Q", K_heads: "K", V_heads: "V", heads: "V", concat: "V", scores: "raw", contributions: "output", W_K: "W_Q", W_V: "W_Q", W_O: "W_Q" };

// Piece j (a head's share) of row r of an (L, h·d) matrix is this [head, row] of the (h, L, d) one: before or after a
// transpose, or where a view alone puts it.
const piece = (r, j, L, h, viewed) => (viewed ? [Math.floor((r * h + j) / L), (r * h + j) % L] : [j, r]);

// ── Layout: which matrices a step shows, and where ───────────────────────────────────────────────

const TITLE = 20, GAP = 12;

// Panels {id, name, head, x, y, rows, cols, cw, ch, …}: a matrix with cells of cw × ch pixels. A product stands
// where the row of its left factor meets the column of its upper one.
function layout(step, box, { L, h, d, d_v, d_model, head, label, narrow, letter, astray }) {
  const D = h * Math.max(d, d_v, d_model / h), { w, h: H } = box, panels = [];
  const width = (name) => ({ X: d_model, output: d_model, contributions: d_model, Q: h * d, K: h * d, V: h * d_v, concat: h * d_v, V_heads: d_v, heads: d_v }[name] ?? d);
  const put = (name, i, x, y, rows, cols, cw, ch, more = {}) =>
    panels.push({ id: (i < 0 ? name : `${name}/${i}`) + (more.small ? "/small" : ""), name, head: i, x, y, rows, cols, cw, ch, ...more });
  const heads = [...Array(h).keys()];
  const row = (name, y, height, more) => { // the heads' matrices side by side; if asked, with tokens beside each
    const gap = more.labelled ? clip((w - label) * 0.42 / h, 10, label - 3) : 10, each = width(name), cw = Math.min((w - label - gap * (h - 1)) / h / Math.max(d, d_v), 28);
    heads.forEach((i) => put(name, i, label + i * (each * cw + gap), y, L, each, cw, height, { tokens: i === 0 || more.labelled, room: i ? gap - 5 : 60, title: i === 0, ...more }));
  };
  if (step === 0) {
    put("X", -1, label, TITLE, L, d_model, Math.min((w - label) / d_model, 44), Math.min((H - TITLE) / L, 34), { tokens: true, title: true });
  } else if (step === 1 && !narrow) {
    const gap = 22, cw = Math.min((w - label - 3 * gap) / 4 / D, 26), ch = Math.min(24, (H * 0.5) / L);
    const above = Math.min(cw, (H - L * ch - 2 * TITLE - 4) / d_model), y = TITLE * 2 + d_model * above + 4;
    put("X", -1, label, y, L, d_model, cw, ch, { tokens: true, title: true });
    ["Q", "K", "V"].forEach((name, i) => {
      const x = label + (i + 1) * (D * cw + gap);
      put(`W_${name}`, -1, x, TITLE, d_model, width(name), cw, above, { title: true });
      put(name, -1, x, y, L, width(name), cw, ch, { title: true });
    });
  } else if (step === 1) { // one W at a time, as wide as what it makes: its column stands over the number's
    const gap = TITLE + 4, cw = Math.min((w - label) / D, 28), above = Math.min(d_model * cw, (H - 5 * gap) * 0.3);
    const ch = Math.min((H - 5 * gap - above) / 4 / L, 22);
    put("X", -1, label, TITLE, L, d_model, cw, ch, { tokens: true, title: true });
    put(`W_${letter}`, -1, label, TITLE + L * ch + gap, d_model, width(letter), cw, above / d_model, { title: true });
    ["Q", "K", "V"].forEach((name, i) => put(name, -1, label, TITLE + above + gap + (i + 1) * (L * ch + gap), L, width(name), cw, ch, { tokens: true, title: true }));
  } else if (step === 2) {
    const ch = Math.min((H - 4 * TITLE - 12) / 3 / L, 24);
    ["Q_heads", "K_heads", "V_heads"].forEach((name, n) => row(name, 2 * TITLE + n * (L * ch + TITLE + 4), ch, { badge: n === 0, labelled: astray }));
  } else if (step <= 6) {
    middle(step);
  } else if (step === 7) {
    const ch = Math.min((H - 4 * TITLE - 32) / 2 / L, 26), y = 4 * TITLE + L * ch + 12;
    row("heads", 2 * TITLE, ch, { badge: true });
    put("concat", -1, label, y, L, h * d_v, Math.min((w - label) / h / d_v, 28), ch, { tokens: true, title: true, bands: true });
  } else {
    last();
  }
  return centred(panels, box);

  // Steps 3 to 6: the chosen head large, all heads small beside it or below.
  function middle(at) {
    const name = STEPS[at].tensors[0], cols = at === 6 ? d_v : L, aside = at === 5 ? 34 : 0; // room for entropies
    const between = narrow ? 8 : 14, room = narrow ? H * (aside ? 0.42 : 0.2) : H;
    const fit = (n) => { // n heads a line: how large a cell of the small ones can be
      const down = Math.ceil(h / n), sw = ((narrow ? w : w * 0.34) - (n - 1) * between) / n - aside, sh = room / down - TITLE - 6;
      const cw = Math.min(sw / cols, at === 6 ? 30 : sh / L, 30), ch = at === 6 ? Math.min(sh / L, 16) : cw;
      return { n, down, cw, ch, sw: sw + aside, area: cw * ch };
    };
    const small = h > 1 && heads.map((i) => fit(i + 1)).reduce((best, one) => (one.area > best.area * 1.01 ? one : best));
    const arrow = narrow ? 22 : 30, even = narrow ? 38 : 50; // room for → and for entropies
    const fw = narrow || !small ? w : w * 0.66 - 34, fh = narrow && small ? H - small.down * (L * small.ch + TITLE + 6) : H;
    if (at === 3) {
      const left = Math.max(Math.min(d * 14, fw * 0.28), 52), over = Math.min(d * 14, fh * 0.26);
      const s = Math.min((fw - label - left - GAP) / L, (fh - 3 * TITLE - over - 6) / L, 54), x = label + left + GAP, y = 2 * TITLE + over + 4;
      put("Q_heads", head, label, y, L, d, left / d, s, { tokens: true, title: true });
      put("K_heads", head, x, TITLE, L, d, s, over / d, { flip: true, title: "Kᵀ" });
      put("raw", head, x, y, L, L, s, s, { title: true, keys: true });
    } else if (at === 4) {
      const s = Math.min((fw - label - arrow) / 2 / L, (fh - 2 * TITLE) / L, 54);
      put("raw", head, label, TITLE, L, L, s, s, { tokens: true, title: true, keys: true });
      put("scores", head, label + L * s + arrow, TITLE, L, L, s, s, { title: true, keys: true, sign: "→" });
    } else if (at === 5) {
      const s = Math.min((fw - label - arrow - even - 6) / 2 / L, (fh - 2 * TITLE) / L, 54);
      put("scores", head, label, TITLE, L, L, s, s, { tokens: true, title: true, keys: true });
      put("weights", head, label + L * s + arrow, TITLE, L, L, s, s, { title: true, keys: true, entropy: even, sign: "→" });
    } else {
      const s = Math.min((fw - label - GAP) * 0.55 / L, (fh - 3 * TITLE - 8) / 2 / L, 44), x = label + L * s + 18;
      const cw = Math.min((fw - x) / d_v, 44), over = Math.min(s, 26), y = 2 * TITLE + L * over + 6;
      put("weights", head, label, y, L, L, s, s, { tokens: true, title: true, keys: true });
      put("V_heads", head, x, TITLE, L, d_v, cw, over, { title: true });
      put("heads", head, x, y, L, d_v, cw, s, { title: true });
    }
    const foot = Math.max(...panels.map((p) => p.y + (p.flip ? p.cols : p.rows) * p.ch)) + TITLE + 8;
    if (small) heads.forEach((i) => {
      const { n, cw, ch, sw } = small, column = i % n, line = Math.floor(i / n);
      const tall = narrow ? L * ch + TITLE + 6 : room / small.down;
      put(name, i, (narrow ? 0 : fw + 34) + column * (sw + between) + (sw - aside - cols * cw) / 2, (narrow ? foot : 0) + line * tall + TITLE, L, cols, cw, ch, { small: true, badge: true, entropy: aside });
    });
  }

  function last() {
    const across = narrow && h > 4 ? 4 : h, down = Math.ceil(h / across), gap = 8;
    const part = narrow ? 0.16 : 0.2, foot = down * (TITLE + Math.min(L * 12, H * part / Math.sqrt(down)) + 4) + TITLE;
    if (narrow) {
      const cw = Math.min((w - label) / D, 28), above = Math.min(h * d_v * cw, (H - foot - 3 * TITLE) * 0.36);
      const ch = Math.min((H - foot - 3 * TITLE - 14 - above) / 2 / L, 24), y = TITLE + L * ch + TITLE + 4;
      put("concat", -1, label, TITLE, L, h * d_v, cw, ch, { tokens: true, title: true });
      put("W_O", -1, label, y, h * d_v, d_model, cw, above / h / d_v, { title: true });
      put("output", -1, label, y + above + TITLE + 4, L, d_model, cw, ch, { tokens: true, title: true });
    } else {
      const cw = Math.min((w - label - 24) / 2 / D, 26), ch = Math.min(24, (H - foot) * 0.42 / L);
      const above = Math.min(cw, (H - foot - L * ch - 2 * TITLE - 8) / h / d_v), y = 2 * TITLE + h * d_v * above + 4;
      put("concat", -1, label, y, L, h * d_v, cw, ch, { tokens: true, title: true });
      put("W_O", -1, label + D * cw + 24, TITLE, h * d_v, d_model, cw, above, { title: true });
      put("output", -1, label + D * cw + 24, y, L, d_model, cw, ch, { title: true });
    }
    const sw = (w - gap * (across - 1)) / across, ch = (foot - TITLE) / down - TITLE - 4;
    heads.forEach((i) => put("contributions", i, (i % across) * (sw + gap), H - foot + TITLE + Math.floor(i / across) * (ch + TITLE + 4) + TITLE,
      L, d_model, Math.min(sw / d_model, 14), ch / L, { small: true, badge: true, title: i === 0 }));
  }
}

function centred(panels, box) {
  const right = Math.max(...panels.map((p) => p.x + (p.flip ? p.rows : p.cols) * p.cw + (p.entropy ?? 0)));
  const bottom = Math.max(...panels.map((p) => p.y + (p.flip ? p.cols : p.rows) * p.ch + (p.keys || p.bands ? TITLE : 0)));
  const dx = box.x + Math.max(0, (box.w - right) / 2), dy = box.y + Math.max(0, (box.h - bottom) / 2);
  panels.forEach((p) => { p.x += dx; p.y += dy; });
  return panels;
}

const cellAt = (p, r, c) => (p.flip ? [p.x + r * p.cw, p.y + c * p.ch] : [p.x + c * p.cw, p.y + r * p.ch]);

// ── The lab ──────────────────────────────────────────────────────────────────────────────────────

function node(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key.includes("-") || key === "role") element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

let labs = 0;

// host: {words, given, link(state) or null, trained() → promise, set(state)}
function makeLab(root, first, host) {
  const { words } = host, { lang } = words, say = (key) => words[key];
  const id = `mha-lab-${++labs}`, stopListening = new AbortController(), signal = stopListening.signal;
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let state, trained = null, P, right, wrong, palette, narrow = false, seeRight = false;
  let pos, clock = 0, drawnFrame = 0, mapDue = 0, penFont = ""; // pos: the step shown, a fraction while it moves
  let at = null, weightRow = 0; // the tensor looked at; where in it, the state says, but for the row of a W
  let hover = null; // the cell under the mouse, {name, index}
  let size = { w: 0, h: 0 }, label = 18, pictures = new Map(); // bitmaps by the tensor's name
  let ofWeights = new WeakMap(); // those of a weight matrix by its numbers: they last as long
  const sheets = new Map(); // the bitmaps' canvases, kept: making one is slow

  // — Controls —
  const controls = {};
  const slider = (key, min, max, step, input) => {
    const text = node("span", {}, node("i", { textContent: say(key) }), key === "real" ? "" : key), out = node("span", { className: "mha-lab-out" }), range = node("input", { type: "range", "data-control": key, min, max, step, oninput: input });
    return (controls[key] = { range, out, label: node("label", { className: "mha-lab-slider" }, text, range, out) }).label;
  };
  const choice = (key, options, onchange) => {
    const select = node("select", { "data-control": key, onchange: () => onchange(select.value) }, ...options.map(([value, text]) => node("option", { value, textContent: text })));
    controls[key] = select;
    return node("label", { className: "mha-lab-choice" }, node("span", { textContent: say(key) }), select);
  };
  const tick = (key, onchange) => {
    const box = node("input", { type: "checkbox", "data-control": key, onchange: () => onchange(box.checked) });
    controls[key] = box;
    return node("label", { className: "mha-lab-tick" }, box, node("span", { textContent: say(key) }));
  };
  const button = (key, onclick) => (controls[key] = node("button", { type: "button", "data-control": key, onclick, textContent: say(key) }));

  const sentence = node("input", { type: "text", "data-control": "sentence", id: `${id}-sentence`, spellcheck: false, autocomplete: "off" });
  const readSentence = () => change({ tokens: sentence.value, unit: state.unit });
  sentence.addEventListener("input", (event) => event.isComposing || readSentence());
  sentence.addEventListener("compositionend", readSentence);
  sentence.addEventListener("blur", showSentence);
  const examples = words.examples.map(([text, unit], i) => [String(i), text]);
  const writing = node("div", { className: "mha-lab-writing" },
    node("label", { className: "mha-lab-sentence" }, node("span", { textContent: say("sentence") }), sentence),
    choice("unit", ["characters", "words"].map((unit) => [unit, say(unit)]), (unit) => change({ unit, tokens: sentence.value })),
    choice("example", [["", say("choose")], ...examples], (i) => {
      if (i === "") return;
      const [text, unit] = words.examples[i];
      change({ tokens: text, unit });
      showSentence();
      controls.example.value = "";
    }));

  const map = node("div", { className: "mha-lab-map", role: "group", "aria-label": say("step") });
  const stops = STEPS.map((stop, step) => {
    const thumb = node("canvas", { "aria-hidden": "true", width: 152, height: 88 }), dims = node("small");
    const press = node("button", { type: "button", onclick: () => change({ step }) }, thumb, node("b", { textContent: stop[lang] }), dims);
    map.append(press);
    return { press, pen: thumb.getContext("2d"), dims };
  });

  const heading = node("p", { className: "mha-lab-heading" });
  const chips = node("div", { className: "mha-lab-heads", role: "radiogroup", "aria-label": say("heads") });
  const canvas = node("canvas", { "aria-hidden": "true" }), ctx = canvas.getContext("2d");
  const over = node("div", { className: "mha-lab-over" }), bubble = node("div", { className: "mha-lab-bubble", hidden: true, "aria-hidden": "true" });
  const stage = node("div", { className: "mha-lab-stage" }, canvas, over, bubble);
  const origin = node("div", { className: "mha-lab-whence", role: "region", tabIndex: 0, "aria-label": say("whence") });
  const status = node("p", { className: "mha-lab-status", role: "status" });

  const scrub = node("input", { type: "range", "data-control": "step", min: 0, max: LAST, step: 0.05, "aria-label": say("step") });
  scrub.addEventListener("input", () => { stop(); pos = Number(scrub.value); const step = Math.round(pos); if (step !== state.step) change({ step }, { stay: true }); else paintSoon(); });
  scrub.addEventListener("change", () => { scrub.value = state.step; move(state.step); });
  scrub.addEventListener("keydown", (event) => {
    const to = { ArrowRight: state.step + 1, ArrowUp: state.step + 1, PageUp: state.step + 1, ArrowLeft: state.step - 1, ArrowDown: state.step - 1, PageDown: state.step - 1, Home: 0, End: LAST }[event.key];
    if (to !== undefined) { event.preventDefault(); change({ step: clip(to, 0, LAST) }); }
  });
  const previous = node("button", { type: "button", "data-control": "back", "aria-label": say("back"), textContent: "◂", onclick: () => change({ step: Math.max(state.step - 1, 0) }) });
  const following = node("button", { type: "button", "data-control": "next", "aria-label": say("next"), textContent: "▸", onclick: () => change({ step: Math.min(state.step + 1, LAST) }) });
  const more = node("button", { type: "button", "data-control": "more", className: "mha-lab-more", "aria-expanded": "false", "aria-controls": `${id}-settings`, textContent: say("more") });
  more.addEventListener("click", () => {
    const open = root.classList.toggle("open");
    more.setAttribute("aria-expanded", String(open));
  });
  const widthOut = node("span", { className: "mha-lab-width" });
  const view = node("div", { className: "mha-lab-view", hidden: true, role: "group", "aria-label": say("view") },
    ...["wrong", "right"].map((key) => button(key, () => { seeRight = key === "right"; refresh(); })));
  const settings = node("div", { className: "mha-lab-settings", id: `${id}-settings` },
    node("div", { className: "mha-lab-row" },
      tick("scale", (scale) => change({ scale })),
      choice("mask", ["none", "causal", "padding", "drawn"].map((mask) => [mask, say(mask)]), chooseMask),
      slider("real", 0, 16, 1, () => change({ padding: Number(controls.real.range.value) })),
      choice("weights", ["random", "identity", "trained", "given"].map((kind) => [kind, say(kind)]), (weights) => change({ weights })),
      button("roll", () => change({ seed: state.seed + 1 }))),
    node("fieldset", { className: "mha-lab-breaks" }, node("legend", { textContent: say("breaks") }),
      ...BREAKS.map((key) => tick(key, () => change({ breaks: BREAKS.filter((name) => controls[name].checked) })))));
  const bar = node("div", { className: "mha-lab-bar" },
    node("div", { className: "mha-lab-steps" }, previous, scrub, following, more),
    node("div", { className: "mha-lab-sizes" },
      slider("h", 1, 8, 1, () => change({ h: Number(controls.h.range.value) })),
      slider("d_k", 0, WIDTHS.length - 1, 1, () => change({ d_k: WIDTHS[controls.d_k.range.value] })), widthOut),
    settings);
  const pasted = node("textarea", { className: "mha-lab-pasted", readOnly: true, hidden: true, rows: 3, "aria-label": say("select") });
  const tools = node("div", { className: "mha-lab-tools" },
    host.link && button("share", () => copy(host.link(state))), button("python", () => copy(code(state))), button("reset", () => { change({ ...first, breaks: first.breaks ?? [] }, { whole: true }); showSentence(); notice([say("was")]); }));

  root.classList.add("mha-lab", "mha-lab-live");
  root.lang = lang === "zh" ? "zh-CN" : "en";
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", say("lab"));
  root.replaceChildren(writing, map, node("div", { className: "mha-lab-top" }, heading, chips), stage, node("p", { className: "mha-lab-signs", textContent: say("signs") }), view, origin, bar, tools, pasted, status);

  // — State —
  const sums = ["tokens", "h", "d_k", "scale", "mask", "padding", "drawn", "weights", "seed", "breaks"];
  let known = ""; // the part of the state that the numbers depend on
  let knownP = "", knownLine = "";
  let wish = null, coming = null; // the state that waits for the trained weights; their promise

  function change(patch, { stay = false, whole = false, quiet = false } = {}) {
    const wanted = whole ? patch : { ...state, ...patch }, result = clean(wanted, host.given);
    const moved = state && result.state.step !== state.step;
    if (state && result.state.weights === "trained" && !trained) { fetchTrained(wanted, quiet); return; }
    wish = wish && !whole && !patch.weights ? { ...wish, ...patch } : null; // what the reader does meanwhile holds
    state = result.state;
    if (whole || result.said.length || !quiet) notice([...result.said.map((pair) => pair[lang]), wish ? say("waiting") : ""]);
    if (moved) { at = null; hover = null; bubble.hidden = true; }
    compute();
    if (!stay) move(state.step);
    if (!quiet) host.set(wish ? clean(wish, host.given).state : state);
    refresh();
  }

  function fetchTrained(wanted, quiet) {
    wish = wanted;
    notice([say("waiting")]);
    if (!quiet) host.set(clean(wish, host.given).state);
    coming ??= host.trained().then((data) => {
      trained = data;
      if (wish) change(wish, { whole: true, quiet: true });
    }, () => {
      coming = null;
      if (!wish) return;
      wish = null;
      notice([say("failed")]);
      host.set(state);
      refresh();
    });
  }

  function compute() {
    const now = JSON.stringify(sums.map((key) => state[key]));
    if (now === known) return;
    known = now;
    const line = state.tokens.join("\n");
    if (line !== knownLine) { // measuring makes the browser lay out the page
      knownLine = line;
      ctx.font = penFont = FONT;
      label = clip(Math.max(...state.tokens.map((token) => ctx.measureText(token).width)) + 8, 18, 64);
    }
    const model = JSON.stringify([state.tokens, state.h, state.d_k, state.weights, state.seed]);
    if (model !== knownP) { P = parameters(state, trained, host.given); knownP = model; }
    right = run({ ...state, breaks: [] }, P);
    wrong = state.breaks.length ? run(state, P) : null;
    pictures.clear();
  }

  function chooseMask(mask) {
    const patch = { mask };
    if (mask === "drawn") {
      const L = state.tokens.length;
      patch.drawn = [...Array(L).keys()].map((r) => [...Array(L).keys()].map((c) => Number(allowed(r, c))));
      if (!perPair(STEPS[state.step].tensors[0])) patch.step = 4;
    }
    change(patch);
    if (mask === "drawn") notice([say("drawing")]);
  }

  const allowed = (r, c) => Boolean(right.allowed.data[r * state.tokens.length + c]);

  function togglePair(r, c) {
    const drawn = state.drawn.map((line) => [...line]);
    drawn[r][c] = drawn[r][c] ? 0 : 1;
    change({ drawn });
    notice([`${state.tokens[r]} → ${state.tokens[c]}: ${say(drawn[r][c] ? "open" : "closed")}`]);
  }

  function notice(lines) { const text = lines.filter(Boolean).join(lang === "zh" ? "" : " "); if (status.textContent !== text) status.textContent = text; }

  async function copy(text) {
    pasted.hidden = true;
    try { await navigator.clipboard.writeText(text); notice([say("copied")]); } catch {
      pasted.hidden = false;
      pasted.value = text;
      pasted.focus();
      pasted.select();
      notice([say("select")]);
    }
  }

  function showSentence() { if (state) sentence.value = state.tokens.join(state.unit === "words" ? " " : ""); }

  // — Refresh: everything that is not the canvas —
  function refresh() {
    const { h, d_k, step, tokens } = state, fixed = state.weights === "trained" || state.weights === "given";
    if (document.activeElement !== sentence) showSentence();
    controls.unit.value = state.unit;
    setSlider("h", h, String(h), fixed);
    setSlider("d_k", Math.max(WIDTHS.indexOf(d_k), 0), String(d_k), fixed);
    widthOut.textContent = fixed ? say("fixed") : `d_model = h·d_k = ${h * d_k}`;
    controls.scale.checked = state.scale;
    controls.mask.value = state.mask;
    controls.real.label.hidden = state.mask !== "padding";
    controls.real.range.max = tokens.length;
    setSlider("real", state.padding, String(state.padding), false);
    controls.weights.querySelector("[value=given]").hidden = state.weights !== "given";
    controls.weights.value = state.weights;
    controls.roll.disabled = fixed || state.weights === "identity";
    BREAKS.forEach((key) => { controls[key].checked = state.breaks.includes(key); });
    view.hidden = !(wrong && narrow);
    controls.right.setAttribute("aria-pressed", String(seeRight));
    controls.wrong.setAttribute("aria-pressed", String(!seeRight));
    previous.disabled = step === 0;
    following.disabled = step === LAST;
    if (!scrub.matches(":active")) scrub.value = step;
    scrub.setAttribute("aria-valuetext", `${step} ${STEPS[step][lang]}`);
    stops.forEach(({ press, dims }, i) => {
      if (i === step) press.setAttribute("aria-current", "step"); else press.removeAttribute("aria-current");
      dims.textContent = shape(right[STEPS[i].tensors[0]]) + (STEPS[i].tensors.length > 1 ? " ×3" : "");
    });
    showHeading();
    showChips();
    showGrids();
    showWhence();
    paintSoon();
  }

  function setSlider(key, value, text, fixed) {
    const { range, out } = controls[key];
    range.value = value;
    range.disabled = fixed;
    range.setAttribute("aria-valuetext", text);
    out.textContent = text;
  }

  function showHeading() {
    const stop = STEPS[state.step], name = stop.tensors[0];
    const dims = stop.tensors.length > 1 ? `${stop.tensors.length} × ${shape(right[name])}` : shape(right[name]);
    let note = words.notes[state.step];
    if (name === "scores") note = state.scale ? `${note}${lang === "zh" ? "" : " "}√d_k\u00a0=\u00a0${number(Math.sqrt(state.d_k))}` : say("scaled");
    const parts = [node("b", { textContent: `${state.step} ${stop[lang]}` }), " ", node("code", { textContent: stop.formula }), " ", node("span", { className: "mha-lab-shape", textContent: dims }), node("br")];
    const does = state.weights === "trained" && state.step > 1 && words.roles[trained.heads[state.head].role];
    if (wrong) { // the step's note may be untrue then
      const changed = stop.tensors.reduce((sum, t) => sum + right[t].data.reduce((n, v, i) => n + (Math.abs(v - wrong[t].data[i]) > 1e-12), 0), 0);
      const total = stop.tensors.reduce((sum, t) => sum + right[t].data.length, 0);
      const text = changed ? say("changed").replace("CHANGED", changed).replace("TOTAL", total) : say("same");
      parts.push(node("span", { className: "mha-lab-wrong", textContent: `✕ ${text}` }));
    } else parts.push(note, ...(does ? [" ", node("span", { className: "mha-lab-chip", "data-head": state.head % 8, textContent: state.head }), ` ${does}`] : []));
    heading.replaceChildren(...parts);
  }

  function showChips() {
    const wanted = `${state.h}/${state.head}`;
    chips.classList.toggle("away", state.step < 2);
    if (chips.dataset.shown === wanted) return;
    const focused = chips.contains(document.activeElement);
    chips.dataset.shown = wanted;
    chips.replaceChildren(...[...Array(state.h).keys()].map((i) => node("button", {
      type: "button", role: "radio", "aria-checked": String(i === state.head), "aria-label": `${say("head")} ${i}`, tabIndex: i === state.head ? 0 : -1, "data-head": i % 8, textContent: i,
      onclick: () => change({ head: i }),
      onkeydown: (event) => {
        const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (by) { event.preventDefault(); change({ head: (state.head + by + state.h) % state.h }); chips.querySelector("[tabindex='0']").focus(); }
      } })));
    if (focused) chips.querySelector("[tabindex='0']").focus();
  }

  // — Cells: names, grids over the picture, whence —
  const tensor = (name, T = right) => T[name] ?? P[name];
  const inside = (t, index) => index.map((n, i) => clip(n, 0, t.shape[i] - 1));
  const place = (name) => inside(tensor(name), byHead(name) ? [state.head, state.row, state.column] : [isWeight(name) ? weightRow : state.row, state.column]);

  function cellName(name, index) {
    const [r, c] = index.slice(-2), row = isWeight(name) ? r : state.tokens[r], column = perPair(name) ? state.tokens[c] : c;
    return `${symbol(name)}[${[byHead(name) && `${say("head")} ${index[0]}`, row, column].filter((part) => part !== false).join(", ")}]`;
  }

  function spoken(name, index) {
    const [r, c] = index.slice(-2), parts = [symbol(name)];
    if (byHead(name)) parts.push(`${say("head")} ${index[0]}`);
    parts.push(perPair(name) ? `${say("query")} ${state.tokens[r]}` : isWeight(name) ? `${say("row")} ${r}` : state.tokens[r], perPair(name) ? `${say("key")} ${state.tokens[c]}` : `${say("column")} ${c}`);
    return `${parts.join(say("comma"))}${say("colon")}${valueText(name, index)}${name === "weights" ? ` (${say("entropy")} ${valueText("entropy", index.slice(0, 2))})` : ""}`;
  }

  function valueText(name, index, digits = 4) {
    const good = number(tensor(name).data[flat(tensor(name), index)], digits);
    const closed = perPair(name) && !allowed(...index.slice(-2)) ? ` (${say("masked")})` : "";
    if (!wrong || !wrong[name]) return good + closed;
    return `✓ ${good}${closed}  ✕ ${number(wrong[name].data[flat(wrong[name], index)], digits)}`;
  }

  // What the step makes comes first, then what it is made of.
  function showGrids() {
    const world = worlds().pop(), shown = panels(world), whole = world.narrow ? panels({ ...world, narrow: false }) : shown;
    const names = [...new Set([...STEPS[state.step].tensors, ...whole.map((p) => p.name)])], wanted = names.join();
    if (over.dataset.shown !== wanted) {
      over.dataset.shown = wanted;
      over.replaceChildren(...names.map((name) => Object.assign(node("div", { role: "grid" }), { name })));
    }
    for (const grid of over.children) {
      const { name } = grid, t = tensor(name);
      grid.setAttribute("aria-label", `${symbol(name)} ${shape(t)}`);
      grid.setAttribute("aria-rowcount", t.shape[t.shape.length - 2]);
      grid.setAttribute("aria-colcount", columns(t) * (name.endsWith("_heads") ? t.shape[0] : 1));
      showCell(grid, false, shown);
    }
  }

  // Only the cell under the cursor exists as an element; a new one each move, so that it is read aloud.
  function showCell(grid, anew, shown = panels(worlds().pop())) {
    const { name } = grid, index = place(name), [r, c] = index.slice(-2);
    const text = spoken(name, index), old = grid.querySelector("[role=gridcell]");
    let cell = old;
    if (anew || !old) {
      cell = node("div", { role: "gridcell", tabIndex: 0, onkeydown: (event) => steer(event, grid), onfocus: () => { at = name; showGrids(); showWhence(); paintSoon(); } });
      grid.replaceChildren(node("div", { role: "row" }, cell));
    }
    cell.setAttribute("aria-label", text);
    cell.setAttribute("aria-selected", String(at === name));
    cell.setAttribute("aria-colindex", (name.endsWith("_heads") ? index[0] * columns(tensor(name)) : 0) + c + 1);
    cell.parentNode.setAttribute("aria-rowindex", r + 1);
    const p = shown.find((panel) => panel.name === name && (!panel.small || name === "contributions") && (panel.head < 0 || panel.head === index[0]));
    if (!p) return;
    const [x, y] = cellAt(p, r, c);
    Object.assign(cell.style, { left: `${x}px`, top: `${y}px`, width: `${Math.max(p.cw, 4)}px`, height: `${Math.max(p.ch, 4)}px` });
    if (anew) cell.focus({ preventScroll: false });
  }

  function steer(event, grid) {
    const { name } = grid, dims = tensor(name).shape, rows = dims[dims.length - 2], cols = columns(tensor(name));
    const index = place(name), n = index.length, spread = name.endsWith("_heads");
    const go = {
      ArrowRight: () => { index[n - 1]++; if (spread && index[n - 1] >= cols && index[0] < dims[0] - 1) { index[0]++; index[n - 1] = 0; } },
      ArrowLeft: () => { index[n - 1]--; if (spread && index[n - 1] < 0 && index[0] > 0) { index[0]--; index[n - 1] = cols - 1; } },
      ArrowDown: () => index[n - 2]++, ArrowUp: () => index[n - 2]--,
      Home: () => { index[n - 1] = 0; }, End: () => { index[n - 1] = cols - 1; },
      PageDown: () => { if (n === 3) index[0]++; else index[0] = rows - 1; }, PageUp: () => { if (n === 3) index[0]--; else index[0] = 0; },
    }[event.key];
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (state.mask === "drawn" && perPair(name)) togglePair(...place(name).slice(-2));
      return;
    }
    if (!go) return;
    event.preventDefault();
    go();
    select(name, inside(tensor(name), index), grid);
  }

  function select(name, index, grid) {
    at = name;
    const [row, column] = index.slice(-2);
    if (isWeight(name)) weightRow = row;
    change(byHead(name) ? { head: index[0], row, column } : isWeight(name) ? { column } : { row, column }, { stay: true });
    if (grid) showCell(grid, true);
  }

  const chosen = () => hover ?? { name: at ?? STEPS[state.step].tensors[0], index: place(at ?? STEPS[state.step].tensors[0]) };

  function origins(cell, T) {
    if (!T[cell.name]) return null; // a parameter
    return whence(T, P, T === right ? { ...state, breaks: [] } : state, cell.name, cell.index);
  }

  // A weight multiplies a column of what comes in and adds to a column of what goes out: [name, column] of both.
  const meets = (name, [r, c]) => [[name === "W_O" ? "concat" : "X", r], [name === "W_O" ? "output" : name.slice(2), c]];

  function showWhence() {
    const cell = chosen(), t = tensor(cell.name), index = inside(t, cell.index), parts = [];
    parts.push(node("b", { textContent: cellName(cell.name, index) }), " = ", node("span", { className: "mha-lab-value", textContent: valueText(cell.name, index) }));
    const T = wrong && !(narrow && seeRight) ? wrong : right, from = origins({ name: cell.name, index }, T);
    if (from && from.formula) parts.push(node("code", { textContent: from.formula }));
    if (isWeight(cell.name)) {
      const [[input], [output]] = meets(cell.name, index), [r, c] = index;
      parts.push(node("code", { textContent: `${symbol(output)}[:,${c}] = … + ${symbol(input)}[:,${r}] · ${cell.name}[${r},${c}] + …` }));
    }
    if (cell.name === "output") {
      const [r, c] = index;
      parts.push(node("span", { className: "mha-lab-sum" }, `${say("by")}${say("colon")}`, ...[...Array(state.h).keys()].flatMap((i) => [
        i ? " + " : "", node("span", { className: "mha-lab-share" }, node("span", { className: "mha-lab-chip", "data-head": i % 8, textContent: i }), ` ${number(T.contributions.data[flat(T.contributions, [i, r, c])])}`)]),
      P.b_O ? ` + b ${number(P.b_O.data[c])}` : ""));
    }
    if (from && from.terms.length) {
      const text = (terms) => terms.map((term) => termText(term, T)).join(" + "), count = from.terms.length;
      const few = text(from.terms.slice(0, 5)) + (count > 5 ? " + …" : "");
      const own = cell.name === "weights" && from.terms.find(({ from: [, place] }) => String(place) === String(index));
      const sum = cell.name === "weights" ? `${own ? number(own.product) : 0} / (${few})` : from.divide && from.divide !== 1 ? `${few} / ${number(from.divide)}` : few;
      parts.push(node("span", { className: "mha-lab-sum", textContent: `= ${sum}` }));
      if (count > 5) { // written out when asked for: there may be hundreds
        const open = Boolean(origin.querySelector("details[open]")), every = node("span"), write = () => { every.textContent = text(from.terms); };
        if (open) write();
        parts.push(node("details", { open }, node("summary", { textContent: `${say("all")} ${count} ${say("terms")}`, onclick: write }), every));
      }
    }
    if (cell.name === "weights") parts.push(node("span", { className: "mha-lab-sum", textContent: `${say("entropy")} H[${say("head")} ${index[0]}, ${state.tokens[index[1]]}] = ${valueText("entropy", index.slice(0, 2))}` }));
    origin.replaceChildren(...parts);
  }

  function valueOf([name, index], T) { const t = tensor(name, T); return t.data[flat(t, index)]; }

  function termText(term, T) {
    const wrap = (v) => number(v).replace(/^−.*/, "($&)"); // a −0.00 is a 0.00
    return term.with ? `${wrap(valueOf(term.from, T))}·${wrap(valueOf(term.with, T))}` : number(term.product);
  }

  // — Worlds: the right picture and, when something is broken, the wrong one beside it —
  function worlds() {
    const box = { x: 2, y: 0, w: size.w - 4, h: size.h };
    if (!wrong) return [{ T: right, box, narrow }];
    if (narrow) return [{ T: seeRight ? right : wrong, box: { ...box, y: 18, h: box.h - 18 }, narrow, flag: seeRight ? "right" : "wrong" }];
    const half = { w: (size.w - 34) / 2, h: size.h - 20, y: 20 };
    return [{ T: right, box: { x: 2, ...half }, narrow: true, flag: "right" }, { T: wrong, box: { x: half.w + 32, ...half }, narrow: true, flag: "wrong" }];
  }

  const panels = (world, step = state.step) => layout(step, world.box, { L: state.tokens.length, h: state.h, d: state.d_k, d_v: columns(right.heads), d_model: columns(right.X), head: state.head, label, narrow: world.narrow, letter: /^(W_)?[QKV]$/.test(at) ? at.slice(-1) : "Q", astray: state.breaks.includes("reshape") });

  // — Colours and bitmaps: one pixel a cell, scaled when drawn —
  function readPalette() {
    const style = getComputedStyle(root), rgb = (name) => {
      const hex = style.getPropertyValue(name).trim().slice(1), full = hex.length === 3 ? [...hex].map((c) => c + c).join("") : hex;
      return [0, 2, 4].map((i) => parseInt(full.slice(i, i + 2), 16));
    };
    palette = Object.fromEntries(["--q", "--k", "--v", "--o", "--weight", "--ink", "--quiet", "--faint", "--ground", "--wrong"].map((key) => [key.slice(2), rgb(key)]));
    palette.heads = [...Array(8).keys()].map((i) => rgb(`--h${i}`));
    pictures.clear();
    ofWeights = new WeakMap();
  }
  const css = (colour) => `rgb(${colour.join(" ")})`;

  function hue(name) {
    const plain = { X: "ink", Q: "q", K: "k", V: "v", Q_heads: "q", K_heads: "k", V_heads: "v", W_Q: "q", W_K: "k", W_V: "v", W_O: "o", output: "o" }[name];
    return palette[plain ?? "weight"];
  }

  // The head that a number belongs to, where its colour says so; in the wrong concat, where it really came from.
  function headOf(name, T, row, col) {
    const L = state.tokens.length;
    if (name !== "concat") return Math.floor(row / L);
    return piece(row, Math.floor(col / columns(T.heads)), L, state.h, T === wrong && state.breaks.includes("transpose"))[0];
  }

  // Grey below zero, the tone above, the stronger the further from it.
  function shades(tone) {
    if (!tone.shades) {
      const packed = ([r, g, b]) => r | (g << 8) | (b << 16), below = packed(palette.quiet), above = packed(tone);
      tone.shades = Uint32Array.from({ length: 512 }, (_, k) => (k < 256 ? below : above) | (Math.abs(k - 256) << 24));
    }
    return tone.shades;
  }

  function picture(name, T) {
    const key = (T === wrong ? "✕" : "") + name;
    if (pictures.has(key)) return pictures.get(key);
    const t = tensor(name, T), cols = columns(t), rows = t.data.length / cols, L = state.tokens.length;
    if (ofWeights.has(t.data)) return ofWeights.get(t.data);
    const top = name === "weights" ? 1 : largest(tensor(SCALE_OF[name] ?? name, right));
    const pen = (!isWeight(name) && sheets.get(key)) || node("canvas").getContext("2d"), sheet = pen.canvas, image = new ImageData(cols, rows), px = new Uint32Array(image.data.buffer);
    if (sheet.width !== cols || sheet.height !== rows) Object.assign(sheet, { width: cols, height: rows });
    const ofHeads = /^(heads|concat|contributions)$/.test(name), stretch = name === "concat" ? columns(T.heads) : ofHeads ? cols : px.length;
    for (let i = 0; i < px.length; i += stretch) dye(px, i, i + stretch, t.data, top, shades(ofHeads ? palette.heads[headOf(name, T, Math.floor(i / cols), i % cols) % 8] : hue(name)));
    if (perPair(name) && name !== "weights") px.forEach((_, i) => { if (!allowed(Math.floor(i / cols) % L, i % cols)) px[i] = 0; });
    pen.putImageData(image, 0, 0);
    const made = { sheet, top };
    if (isWeight(name)) ofWeights.set(t.data, made);
    else { pictures.set(key, made); sheets.set(key, pen); }
    return made;
  }

  // — Painting —
  const FONT = `12px system-ui, "PingFang SC", "HarmonyOS Sans SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif`;
  function paintSoon() { if (!drawnFrame) drawnFrame = requestAnimationFrame(() => { drawnFrame = 0; paint(); }); }

  function paint() {
    if (!size.w || !right) return;
    if (!palette) readPalette();
    ctx.setTransform(size.dpr, 0, 0, size.dpr, 0, 0);
    ctx.clearRect(0, 0, size.w, size.h);
    for (const world of worlds()) paintWorld(world);
    clearTimeout(mapDue);
    if (!narrow && !clock) mapDue = setTimeout(paintMap, 100); // once the picture rests: it must not hold a slider up
    root.dataset.painted = String(Number(root.dataset.painted ?? 0) + 1);
  }

  function paintMap() {
    const T = wrong && !(narrow && seeRight) ? wrong : right, lit = lights(T);
    stops.forEach(({ pen }, i) => paintThumb(pen, STEPS[i].tensors, T, lit));
  }

  function paintWorld(world) {
    if (world.flag) write(say(world.flag), world.box.x, world.box.y - 8, { colour: world.flag === "wrong" ? palette.wrong : palette.v, bold: true });
    const from = Math.floor(pos), t = pos - from;
    if (t < 1e-6) {
      for (const p of panels(world, from)) paintPanel(p, world, 1);
      paintLights(panels(world, from), world);
      return;
    }
    const before = panels(world, from), after = panels(world, from + 1), find = (list, p) => list.find((other) => other.id === p.id);
    const pieces = from === 1 || from === 6;
    const travels = (p) => pieces && !p.small && (from === 1 ? /^(Q|K|V)(_heads)?$/.test(p.name) : /^(heads|concat)$/.test(p.name));
    const ease = (x) => { const u = clip(x, 0, 1); return u * u * (3 - 2 * u); };
    for (const p of before) if (!travels(p) && !find(after, p)) paintPanel(p, world, 1 - ease(t / 0.4));
    for (const p of after) {
      if (travels(p)) continue;
      const old = find(before, p), parent = old ?? before.find((q) => q.name === { scores: "raw", weights: "scores" }[p.name] && q.head === p.head && Boolean(q.small) === Boolean(p.small));
      paintPanel(parent ? between(parent, p, ease(t)) : p, world, old ? 1 : ease((t - 0.45) / 0.5), old && Boolean(old.flip) !== Boolean(p.flip) ? [old, p, ease(t)] : null);
    }
    if (pieces) paintPieces(from, t, before, after, world, ease);
  }

  const between = (a, b, u) => ({ ...b, ...Object.fromEntries(["x", "y", "cw", "ch"].map((key) => [key, a[key] + (b[key] - a[key]) * u])) });

  // Every piece of d_k numbers travels as one: first the gaps of `view`, then the way of `transpose`; back for concat.
  function paintPieces(from, t, before, after, world, ease) {
    const { h } = state, L = state.tokens.length, splitting = from === 1;
    const broken = world.T === wrong && state.breaks.includes(splitting ? "reshape" : "transpose");
    const u = splitting ? t : 1 - t; // 0: one matrix, 1: a matrix a head
    const view = broken || u < 0.3, d_v = columns(right.heads), dims = splitting ? (view && !broken ? [L, h, state.d_k] : [h, L, state.d_k]) : view ? [L, h * d_v] : [L, h, d_v];
    write(`${view ? "view" : "transpose"} → (${dims.join(", ")})`, world.box.x, world.box.y + 8, { bold: true });
    const pairs = splitting ? [["Q", "Q_heads"], ["K", "K_heads"], ["V", "V_heads"]] : [["concat", "heads"]];
    const whole = splitting ? before : after, parts = splitting ? after : before;
    for (const [one, many] of pairs) {
      const a = whole.find((p) => p.name === one), { sheet } = picture(one, world.T), d = a.cols / h;
      const gap = 8 * ease(u / 0.3);
      for (let r = 0; r < L; r++) for (let j = 0; j < h; j++) {
        const [i, row] = piece(r, j, L, h, broken);
        const b = parts.find((p) => p.name === many && p.head === i), go = ease((u - 0.3) / 0.7);
        const x0 = a.x + j * (d * a.cw + gap) - gap * (h - 1) / 2, y0 = a.y + r * a.ch;
        const x = x0 + (b.x - x0) * go, y = y0 + (b.y + row * b.ch - y0) * go, cw = a.cw + (b.cw - a.cw) * go, ch = a.ch + (b.ch - a.ch) * go;
        ctx.imageSmoothingEnabled = cw < 1;
        ctx.fillStyle = css(palette.ground);
        ctx.fillRect(x, y, d * cw, ch);
        ctx.drawImage(sheet, j * d, r, d, 1, x, y, d * cw, ch - (ch > 6 ? 1 : 0));
        if (broken && ch > 11 && go > 0) tag(splitting ? r : row, splitting ? x - 5 : x + 3, y + ch / 2, splitting ? b.room : d * cw - 5, go, splitting);
      }
    }
  }

  // A token beside the numbers that came from it, or on them
  function tag(i, x, y, room, alpha, beside) {
    write(fitted(state.tokens[i], room * 1.2), x, y, { size: 10, alpha, align: beside ? "right" : "left" });
  }

  function write(text, x, y, { colour = palette.ink, align = "left", bold = false, size: px = 12, alpha = 1 } = {}) {
    ctx.globalAlpha = alpha;
    const font = FONT.replace("12px", `${bold ? "600 " : ""}${px}px`);
    if (font !== penFont) ctx.font = penFont = font; // reading a font is slow
    ctx.fillStyle = css(colour);
    ctx.textAlign = align;
    ctx.textBaseline = "middle";
    ctx.fillText(text, x, y);
    ctx.globalAlpha = 1;
  }

  function paintPanel(p, world, alpha, turning) {
    if (alpha <= 0.01) return;
    const T = world.T, t = tensor(p.name, T), { sheet, top } = picture(p.name, T), first = byHead(p.name) ? p.head * p.rows : 0;
    const wide = p.flip ? p.rows : p.cols, tall = p.flip ? p.cols : p.rows, w = wide * p.cw, high = tall * p.ch;
    ctx.globalAlpha = alpha;
    ctx.imageSmoothingEnabled = p.cw < 1 || p.ch < 1;
    if (turning) paintTurning(...turning, sheet, first);
    else if (p.flip) {
      ctx.save();
      ctx.transform(0, p.ch, p.cw, 0, p.x, p.y);
      ctx.drawImage(sheet, 0, first, p.cols, p.rows, 0, 0, p.cols, p.rows);
      ctx.restore();
    } else ctx.drawImage(sheet, 0, first, p.cols, p.rows, p.x, p.y, w, high);
    if (turning) return;
    ctx.strokeStyle = css(palette.faint);
    ctx.lineWidth = 1;
    ctx.beginPath();
    if (p.cw >= 7 && p.ch >= 7) {
      for (let c = 1; c < wide; c++) { ctx.moveTo(p.x + c * p.cw, p.y); ctx.lineTo(p.x + c * p.cw, p.y + high); }
      for (let r = 1; r < tall; r++) { ctx.moveTo(p.x, p.y + r * p.ch); ctx.lineTo(p.x + w, p.y + r * p.ch); }
    }
    ctx.rect(p.x, p.y, w, high);
    ctx.stroke();
    if (perPair(p.name)) paintHatch(p);
    const tagged = p.bands && p.ch >= 11 && world.T === wrong && state.breaks.includes("transpose"); // a band of a row has a token's name
    if (p.cw >= 21.5 && p.ch >= 15 && !p.small) paintNumbers(p, t, top, first, alpha, tagged ? p.cols / state.h : 0);
    ctx.globalAlpha = 1;
    paintWords(p, world, t, w, high, alpha, tagged);
  }

  function paintTurning(a, b, u, sheet, first) {
    for (let r = 0; r < a.rows; r++) for (let c = 0; c < a.cols; c++) {
      const [x0, y0] = cellAt(a, r, c), [x1, y1] = cellAt(b, r, c);
      ctx.drawImage(sheet, c, first + r, 1, 1, x0 + (x1 - x0) * u, y0 + (y1 - y0) * u, a.cw + (b.cw - a.cw) * u, a.ch + (b.ch - a.ch) * u);
    }
  }

  function paintHatch(p) {
    ctx.save();
    ctx.beginPath();
    let any = false;
    for (let r = 0; r < p.rows; r++) for (let c = 0; c < p.cols; c++) if (!allowed(r, c)) { any = true; ctx.rect(p.x + c * p.cw, p.y + r * p.ch, p.cw, p.ch); }
    if (any) {
      ctx.clip();
      ctx.beginPath();
      const w = p.cols * p.cw, high = p.rows * p.ch;
      for (let s = -high; s < w; s += 5) { ctx.moveTo(p.x + s, p.y + high); ctx.lineTo(p.x + s + high, p.y); }
      ctx.strokeStyle = css(palette.quiet);
      ctx.globalAlpha *= 0.55;
      ctx.lineWidth = 0.8;
      ctx.stroke();
    }
    ctx.restore();
  }

  function paintNumbers(p, t, top, first, alpha, band) {
    const px = clip(Math.min(p.cw / 3.1, p.ch * 0.6), 9, 13), named = Math.ceil((label / 1.2 - 3) / p.cw), shown = [];
    for (let r = 0; r < p.rows; r++) for (let c = 0; c < p.cols; c++) {
      const value = t.data[(first + r) * p.cols + c];
      if (c % band < named) continue; // the token's name stands there
      if (!perPair(p.name) || allowed(r, c) || (p.name === "weights" && value)) shown.push([r, c, value]);
    }
    const text = (value, digits) => {
      const long = Math.abs(value) < 0.5 / 10 ** digits ? "0" : number(value, Math.abs(value) >= 9.95 ? Math.min(digits, 1) : digits);
      return p.cw < 36 ? long.replace(/^(−?)0\./, "$1.") : long;
    };
    ctx.font = penFont = FONT.replace("12px", `${px}px`);
    const widest = (digits) => ctx.measureText(shown.map(([, , value]) => text(value, digits)).reduce((a, b) => (b.length > a.length ? b : a), "")).width;
    const digits = p.name === "weights" || widest(2) < p.cw - 3 ? 2 : Number(widest(1) < p.cw + 1);
    if (!digits && top < 9.95) return; // nothing but 0 and ±1 would be left
    for (const [r, c, value] of shown) {
      const [x, y] = cellAt(p, r, c);
      write(text(value, digits), x + p.cw / 2, y + p.ch / 2 + 0.5, { size: px, align: "center", colour: Math.abs(value) / top > 0.66 ? palette.ground : palette.ink, alpha });
    }
  }

  function paintWords(p, world, t, w, high, alpha, tagged) {
    const { h } = state, L = state.tokens.length, astray = p.labelled && world.T === wrong, spread = p.cols / h * p.cw;
    if (p.title) {
      const text = typeof p.title === "string" ? p.title : symbol(p.name), y = p.y - 10 - (p.badge ? TITLE - 2 : 0);
      const dims = byHead(p.name) && !p.badge && !p.small ? `(${p.flip ? [p.cols, p.rows] : [p.rows, p.cols]})`.replace(",", ", ") : shape(t);
      write(text, p.x, y, { bold: true, colour: p.name === "X" ? palette.ink : byHead(p.name) && /^(heads|contributions)$/.test(p.name) ? palette.ink : hue(p.name), alpha });
      const wide = ctx.measureText(text).width + 6;
      if (ctx.measureText(dims).width + wide < Math.max(w, p.badge ? size.w : 0) + 40) write(dims, p.x + wide, y, { colour: palette.quiet, size: 11, alpha });
    }
    if (p.badge) badge(p.head, p.x + w / 2, p.y - 10, alpha, p.head === state.head);
    if (p.bands && spread > 14) for (let j = 0; j < h; j++) badge(j, p.x + (j + 0.5) * spread, p.y + high + 11, alpha, false);
    if (p.tokens && p.ch >= 9) state.tokens.forEach((token, r) => {
      const own = astray ? state.tokens[Math.floor((p.head * L + r) / h)] : token; // whose numbers these are
      const px = Math.min(p.room < 60 ? 10 : 12, p.ch);
      write(fitted(own, (p.room ?? 60) * 12 / px), p.x - (px < 12 ? 4 : 5), p.y + (r + 0.5) * p.ch, { align: "right", alpha, size: px });
    });
    if (tagged) for (let r = 0; r < L; r++) for (let j = 0; j < h; j++) tag((r * h + j) % L, p.x + j * spread + 3, p.y + (r + 0.5) * p.ch, Math.min(spread - 5, (label - 8) / 1.2), alpha);
    if (p.keys && p.cw >= 11) {
      const px = clip(12 * (p.cw - 3) / (label - 8), 9, Math.min(12, p.cw));
      state.tokens.forEach((token, c) => write(fitted(token, (p.cw - 1) * 12 / px), p.x + (c + 0.5) * p.cw, p.y + high + 10, { align: "center", alpha, size: px, colour: palette.quiet }));
    }
    if (p.sign) write(p.sign, p.x - (world.narrow ? 11 : 15), p.y + high / 2, { align: "center", colour: palette.quiet, size: 16, alpha });
    if (p.entropy) paintEntropy(p, world.T.entropy, p.x + w + 6, alpha);
  }

  // Beside each row of weights how even it is: a bar, as long as there is room where it is as even as can be, and its number.
  function paintEntropy(p, H, x, alpha) {
    if (p.title) write(say("entropy"), x + 28, p.y - 10, { align: "right", colour: palette.quiet, size: 11, alpha });
    for (let r = 0; r < p.rows; r++) {
      const value = H.data[p.head * p.rows + r];
      ctx.globalAlpha = alpha;
      ctx.fillStyle = css(palette.faint);
      ctx.fillRect(x, p.y + r * p.ch + 1, (p.entropy - 6) * value / Math.log(Math.max(p.rows, 2)), Math.max(p.ch - 2, 1));
      if (p.ch >= 10) write(number(value, p.small && p.ch < 11.5 ? 1 : 2), x + 2, p.y + (r + 0.5) * p.ch + 0.5, { size: Math.min(11, p.ch), alpha });
    }
    ctx.globalAlpha = 1;
  }

  function badge(i, x, y, alpha, chosenHead) {
    ctx.globalAlpha = alpha;
    ctx.beginPath();
    ctx.arc(x, y, 8, 0, 2 * Math.PI);
    ctx.fillStyle = css(palette.heads[i % 8]);
    ctx.fill();
    if (chosenHead) { ctx.lineWidth = 2; ctx.strokeStyle = css(palette.ink); ctx.stroke(); }
    write(String(i), x, y + 0.5, { align: "center", size: 11, bold: true, colour: palette.ground, alpha });
  }

  function fitted(text, width) {
    ctx.font = penFont = FONT;
    if (ctx.measureText(text).width <= width) return text;
    const short = [...text];
    while (short.length && ctx.measureText(short.join("") + "…").width > width) short.pop();
    return short.length ? short.join("") + "…" : [...text][0];
  }

  // Which cells made the chosen one: {name, head, r0, r1, c0, c1} boxes.
  function lights(T) {
    const cell = chosen(), index = inside(tensor(cell.name), cell.index), boxes = new Map();
    const from = origins({ name: cell.name, index }, T);
    for (const term of from ? from.terms : []) for (const source of [term.from, term.with]) {
      if (!source) continue;
      const [name, place] = source, [r, c] = place.length > 1 ? place.slice(-2) : [0, place[0]], head = byHead(name) ? place[0] : -1, key = `${name}/${head}`;
      const box = boxes.get(key) ?? { name, head, r0: r, r1: r, c0: c, c1: c };
      Object.assign(box, { r0: Math.min(box.r0, r), r1: Math.max(box.r1, r), c0: Math.min(box.c0, c), c1: Math.max(box.c1, c) });
      boxes.set(key, box);
    }
    if (isWeight(cell.name)) for (const [name, c] of meets(cell.name, index)) boxes.set(name, { name, head: -1, r0: 0, r1: state.tokens.length - 1, c0: c, c1: c });
    const [r, c] = index.slice(-2);
    return [...boxes.values(), { name: cell.name, head: byHead(cell.name) ? index[0] : -1, r0: r, r1: r, c0: c, c1: c, target: true }];
  }

  function paintLights(list, world) {
    for (const light of lights(world.T)) for (const p of list) {
      if (p.name !== light.name || p.head !== light.head || (p.small && p.name !== "contributions")) continue;
      const [x0, y0] = cellAt(p, light.r0, light.c0), [x1, y1] = cellAt(p, light.r1, light.c1);
      frame(x0, y0, x1 - x0 + p.cw, y1 - y0 + p.ch, light.target);
    }
  }

  function frame(x, y, w, h, target) {
    ctx.lineWidth = target ? 4.5 : 4;
    ctx.strokeStyle = css(palette.ground);
    ctx.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1);
    ctx.lineWidth = target ? 2.5 : 1.5;
    ctx.strokeStyle = css(palette.ink);
    ctx.strokeRect(x - 0.5, y - 0.5, w + 1, h + 1);
  }

  function paintThumb(pen, names, T, lit) {
    const { width: w, height: h } = pen.canvas, each = h / names.length;
    pen.clearRect(0, 0, w, h);
    names.forEach((name, n) => {
      const t = tensor(name, T), heads = byHead(name) ? t.shape[0] : 1, L = t.shape[t.shape.length - 2], cols = columns(t), { sheet } = picture(name, T);
      const gap = heads > 1 ? 4 : 0, pw = (w - gap * (heads - 1)) / heads, ph = each - (names.length > 1 ? 4 : 0);
      const pwide = perPair(name) ? Math.min(pw, ph) : pw, left = (w - heads * pwide - gap * (heads - 1)) / 2, ptall = perPair(name) ? pwide : ph, top = n * each + (ph - ptall) / 2;
      pen.imageSmoothingEnabled = cols > pwide;
      for (let i = 0; i < heads; i++) {
        const x = left + i * (pwide + gap);
        pen.drawImage(sheet, 0, i * L, cols, L, x, top, pwide, ptall);
        pen.lineWidth = 1;
        pen.strokeStyle = css(palette.quiet);
        pen.strokeRect(x + 0.5, top + 0.5, pwide - 1, ptall - 1);
        for (const light of lit) if (light.name === name && (light.head < 0 || light.head === i)) {
          pen.lineWidth = 3;
          pen.strokeStyle = css(palette.ink);
          pen.strokeRect(x + light.c0 * pwide / cols, top + light.r0 * ptall / L, Math.max((light.c1 - light.c0 + 1) * pwide / cols, 3), Math.max((light.r1 - light.r0 + 1) * ptall / L, 3));
        }
      }
    });
  }

  // — Moving between steps —
  function stop() { cancelAnimationFrame(clock); clock = 0; }

  function move(to) {
    stop();
    if (pos === undefined || still.matches || Math.abs(to - pos) < 1e-3) { pos = to; paintSoon(); return; }
    const from = pos, began = performance.now(), time = 800 * Math.min(Math.abs(to - from), 1.6);
    root.dataset.moving = "yes";
    const turn = (now) => {
      const u = clip((now - began) / time, 0, 1);
      pos = u === 1 ? to : from + (to - from) * u;
      clock = u === 1 ? 0 : requestAnimationFrame(turn);
      if (u === 1) delete root.dataset.moving;
      paint();
    };
    clock = requestAnimationFrame(turn);
  }

  // — Pointer —
  function hit(event) {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    for (const world of worlds()) for (const p of panels(world)) {
      const across = Math.floor((x - p.x) / p.cw), down = Math.floor((y - p.y) / p.ch), [r, c] = p.flip ? [across, down] : [down, across];
      if (r >= 0 && c >= 0 && r < p.rows && c < p.cols) return { p, x, y, name: p.name, index: byHead(p.name) ? [p.head, r, c] : [r, c] };
    }
    return null;
  }

  canvas.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch" || clock) return;
    const found = hit(event);
    const key = found && `${found.name}/${found.index}`;
    if (key !== (hover && `${hover.name}/${hover.index}`)) look(found);
  }, { signal });
  function look(found) {
    hover = found && { name: found.name, index: found.index };
    bubble.hidden = !found;
    if (found) {
      bubble.textContent = valueText(found.name, found.index);
      Object.assign(bubble.style, { left: `${clip(found.x + 14, 0, Math.max(size.w - 90, 0))}px`, top: `${Math.max(found.y - 30, 0)}px` });
    }
    showWhence();
    paintSoon();
  }
  canvas.addEventListener("pointerleave", (event) => { if (hover && event.pointerType !== "touch") look(null); }, { signal });

  let pressed = null;
  stage.addEventListener("pointerdown", (event) => { pressed = { x: event.clientX, y: event.clientY }; }, { signal });
  stage.addEventListener("pointerup", (event) => {
    if (!pressed) return;
    const dx = event.clientX - pressed.x, dy = event.clientY - pressed.y;
    pressed = null;
    if (event.pointerType === "touch" && Math.abs(dx) > 45 && Math.abs(dy) < 60) { change({ step: clip(state.step - Math.sign(dx), 0, LAST) }); return; }
    if (Math.hypot(dx, dy) > 10) return;
    const found = hit(event);
    hover = null;
    bubble.hidden = true;
    if (!found) return;
    if (found.p.small && found.name !== "contributions") { change({ head: found.index[0] }); return; }
    if (isWeight(found.name)) { look(found); return; }
    select(found.name, found.index);
    if (state.mask === "drawn" && perPair(found.name)) togglePair(...found.index.slice(-2));
  }, { signal });

  // — Size, theme, life —
  const watch = new ResizeObserver(() => {
    const width = root.clientWidth;
    if (!width) return;
    narrow = width < 560;
    root.classList.toggle("narrow", narrow);
    const dpr = Math.min(devicePixelRatio || 1, 2);
    size = { w: stage.clientWidth, h: stage.clientHeight, dpr };
    canvas.width = Math.round(size.w * dpr); // forgets its font
    penFont = "";
    canvas.height = Math.round(size.h * dpr);
    if (right) refresh();
  });
  watch.observe(root);
  const repaint = () => { palette = null; clearTimeout(mapDue); paintSoon(); };
  const themes = new MutationObserver(repaint);
  for (const element of [document.documentElement, document.body]) themes.observe(element, { attributes: true, attributeFilter: ["data-theme", "data-jp-theme-light", "class"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint, { signal });

  const start = clean(first, host.given);
  if (start.state.weights === "trained") {
    change({ ...first, weights: "random" }, { whole: true, quiet: true });
    fetchTrained(first, true);
  } else change(first, { whole: true, quiet: true });
  showSentence();

  // The weights of every width are drawn while nothing else happens: the first move of a slider need not wait for them.
  const whenIdle = self.requestIdleCallback ?? ((chore) => setTimeout(chore, 300)), widths = [...WIDTHS];
  const draw = () => {
    if (signal.aborted || !widths.length) return;
    const wider = { ...state, h: 8, d_k: widths.shift(), weights: "random", breaks: [] };
    run(wider, parameters(wider));
    whenIdle(draw);
  };
  whenIdle(draw);

  return { change, get state() { return state; }, destroy() { stop(); cancelAnimationFrame(drawnFrame); clearTimeout(mapDue); stopListening.abort(); watch.disconnect(); themes.disconnect(); } };
}

// ── Hosts ────────────────────────────────────────────────────────────────────────────────────────

// anywidget: the model's traits are the state.
function render({ model, el }) {
  const read = () => Object.fromEntries(KEYS.map((key) => [key, model.get(key)]).filter(([, value]) => value !== undefined && value !== null));
  const root = document.createElement("div");
  root.addEventListener("focusin", ({ target }) => target.setAttribute("data-lm-suppress-shortcuts", "")); // or JupyterLab takes the arrow keys
  el.append(root);
  let writing = false;
  const lab = makeLab(root, read(), {
    words: model.get("words"),
    given: model.get("given"),
    link: null,
    trained: () => new Promise((resolve, reject) => { // the kernel sends them when it has heard of the wish
      const look = () => { if (model.get("trained")) { model.off("change:trained", look); resolve(model.get("trained")); } };
      model.on("change:trained", look);
      look();
      setTimeout(reject, 5000);
    }),
    set(state) {
      writing = true;
      for (const key of KEYS) if (JSON.stringify(model.get(key)) !== JSON.stringify(state[key])) model.set(key, state[key]);
      model.save_changes();
      writing = false;
    },
  });
  const follow = () => { if (!writing) lab.change(read(), { quiet: true }); };
  KEYS.forEach((key) => model.on(`change:${key}`, follow));
  return () => { KEYS.forEach((key) => model.off(`change:${key}`, follow)); lab.destroy(); };
}

// A page of the book: the state is in the figure, and in the address once the reader has touched the lab.
function bringToLife(figure) {
  const { state: first, words } = JSON.parse(figure.querySelector("script[type='application/json']").textContent), mark = "#lab=";
  const fromHere = () => (location.hash.startsWith(mark) ? fromAddress(location.hash.slice(mark.length)) : null);
  const home = (state) => mark + toAddress(state);
  let waiting = 0;
  const lab = makeLab(figure, first, {
    words,
    link: (state) => location.href.split("#")[0] + home(state),
    trained: () => (self.mhaLabTrained ? Promise.resolve(self.mhaLabTrained) : new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.async = true;
      script.src = figure.dataset.trained ?? document.querySelector("script[src*='lab-page.js']").src.replace("lab-page.js", "lab-trained.js");
      script.onload = () => (self.mhaLabTrained ? resolve(self.mhaLabTrained) : reject(new Error(script.src)));
      script.onerror = reject;
      document.head.append(script);
    })),
    set(state) {
      clearTimeout(waiting); // browsers count how often an address changes
      const { hash } = location;
      waiting = setTimeout(() => {
        if (location.hash !== hash) return; // the reader has gone elsewhere meanwhile
        try { history.replaceState(history.state, "", home(state)); } catch { /* an address the browser keeps */ }
      }, 250);
    },
  });
  const follow = () => { const raw = fromHere(); if (raw) { lab.change(raw, { whole: true, quiet: true }); figure.scrollIntoView({ block: "start" }); } };
  addEventListener("hashchange", follow);
  follow();
}

export default { render };
