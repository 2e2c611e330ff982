// The five steps of multi-head attention, with the names of mha/steps.py:
//
//   project → splitHeads → attend (scores, softmax, weighted sum) → mergeHeads → output
//
// L tokens, h heads, d_model the model's width, d_k the width of one head's queries and keys, d_v of its values.
// A matrix is {shape, data}: its numbers row by row, in double precision. Nothing here knows of a page.

const matrix = (...shape) => ({ shape, data: new Float64Array(shape.reduce((n, size) => n * size, 1)) });

// ---- The five steps ----

/** Step 1: Y = X W + b.  X (L, d), W (d, n), b (n) → (L, n) */
export function project(X, W, b) {
  const [L, d] = X.shape, n = W.shape[1], Y = matrix(L, n), x = X.data, w = W.data, y = Y.data, fours = d - (d % 4);
  for (let m = 0; m < fours; m += 4) { // four rows of W at once, for all rows of X while they are at hand: faster
    for (let i = 0; i < L; i++) {
      const at = i * d + m, x0 = x[at], x1 = x[at + 1], x2 = x[at + 2], x3 = x[at + 3];
      for (let c = m * n, to = i * n; c < m * n + n; c++, to++) y[to] += x0 * w[c] + x1 * w[c + n] + x2 * w[c + 2 * n] + x3 * w[c + 3 * n];
    }
  }
  for (let m = fours; m < d; m++) for (let i = 0; i < L; i++) for (let c = 0; c < n; c++) y[i * n + c] += x[i * d + m] * w[m * n + c];
  if (b) for (let k = 0; k < Y.data.length; k++) Y.data[k] += b.data[k % n];
  return Y;
}

/** Step 2: view, then transpose.  (L, h·d) → (h, L, d): head i takes columns i·d … i·d + d − 1 of every row */
export function splitHeads(X, h) {
  const [L, width] = X.shape, d = width / h, Y = matrix(h, L, d);
  for (let head = 0; head < h; head++)
    for (let i = 0; i < L; i++)
      for (let c = 0; c < d; c++) Y.data[(head * L + i) * d + c] = X.data[i * width + head * d + c];
  return Y;
}

/** Step 3.1: raw scores Q Kᵀ.  (h, L, d_k), (h, L, d_k) → (h, L, L) */
export function scores(Q, K) {
  const [h, L, d] = Q.shape, S = matrix(h, L, L);
  for (let head = 0; head < h; head++)
    for (let i = 0; i < L; i++)
      for (let j = 0; j < L; j++) {
        let sum = 0;
        for (let c = 0; c < d; c++) sum += Q.data[(head * L + i) * d + c] * K.data[(head * L + j) * d + c];
        S.data[(head * L + i) * L + j] = sum;
      }
  return S;
}

/** Step 3.2: S / √d_k.  (h, L, L) → (h, L, L) */
export const scale = (S, width) => ({ shape: S.shape, data: S.data.map((s) => s / Math.sqrt(width)) });

/** Step 3.3: every row becomes weights that sum to 1 over the keys allowed; to 0 where none is. allowed (L, L).
 *  Two mistakes to order: over columns instead of rows; and masking only afterwards. */
export function softmax(S, allowed, { overColumns = false, maskLate = false } = {}) {
  const [h, L] = S.shape, A = matrix(h, L, L);
  for (let head = 0; head < h; head++)
    for (let a = 0; a < L; a++) {
      const cells = [];
      for (let b = 0; b < L; b++) {
        const at = overColumns ? b * L + a : a * L + b;
        if (maskLate || allowed.data[at]) cells.push(at);
      }
      const top = Math.max(...cells.map((at) => S.data[head * L * L + at])); // no power overflows
      let total = 0;
      for (const at of cells) total += A.data[head * L * L + at] = Math.exp(S.data[head * L * L + at] - top);
      for (const at of cells) A.data[head * L * L + at] *= allowed.data[at] / total;
    }
  return A;
}

/** Step 3.4: every head's weighted sum of values, A V.  (h, L, L), (h, L, d_v) → (h, L, d_v) */
export function attend(A, V) {
  const [h, L, d] = V.shape, Y = matrix(h, L, d);
  for (let head = 0; head < h; head++)
    for (let i = 0; i < L; i++)
      for (let j = 0; j < L; j++) {
        const a = A.data[(head * L + i) * L + j];
        for (let c = 0; c < d; c++) Y.data[(head * L + i) * d + c] += a * V.data[(head * L + j) * d + c];
      }
  return Y;
}

/** Step 4: transpose back, then view.  (h, L, d_v) → (L, h·d_v): undoes the split */
export function mergeHeads(X) {
  const [h, L, d] = X.shape, Y = matrix(L, h * d);
  for (let head = 0; head < h; head++)
    for (let i = 0; i < L; i++)
      for (let c = 0; c < d; c++) Y.data[i * h * d + head * d + c] = X.data[(head * L + i) * d + c];
  return Y;
}

/** Step 5: Concat(head_1, …, head_h) W_O + b_O.  (L, h·d_v) → (L, d_model) */
export const output = project;

/** Which keys each query may see: (L, L), 1 = may attend */
export function mask({ mask, padding, drawn }, L) {
  const may = matrix(L, L);
  const allows = {
    none: () => 1, causal: (i, j) => j <= i, padding: (i, j) => j < padding, drawn: (i, j) => drawn[i][j],
  }[mask];
  for (let i = 0; i < L; i++) for (let j = 0; j < L; j++) may.data[i * L + j] = allows(i, j) ? 1 : 0;
  return may;
}

/** head_i W_O[i], what each head adds to the output: (h, L, d_v) → (h, L, d_model) */
function contribute(heads, W_O) {
  const [h, L, d] = heads.shape, n = W_O.shape[1], Y = matrix(h, L, n);
  for (let head = 0; head < h; head++) {
    const mine = { shape: [L, d], data: heads.data.subarray(head * L * d, (head + 1) * L * d) };
    const rows = { shape: [d, n], data: W_O.data.subarray(head * d * n, (head + 1) * d * n) };
    Y.data.set(project(mine, rows).data, head * L * n);
  }
  return Y;
}

/** −Σ a ln a of every row of weights, in nats: (h, L, L) → (h, L) */
function entropies(A) {
  const [h, L] = A.shape, H = matrix(h, L);
  A.data.forEach((a, at) => { if (a > 0) H.data[Math.floor(at / L)] -= a * Math.log(a); });
  return H;
}

/** All of it, every tensor by name; with the mistakes that state.breaks names. */
export function run(state, p) {
  const broken = (name) => state.breaks.includes(name);
  const [L, d_model] = p.X.shape, h = state.h;
  const viewed = (X, ...shape) => ({ shape, data: X.data }); // a view alone: same numbers, other shape
  const split = (X) => (broken("reshape") ? viewed(X, h, L, X.shape[1] / h) : splitHeads(X, h));
  const [Q, K, V] = ["Q", "K", "V"].map((name) => project(p.X, p["W_" + name], p["b_" + name]));
  const [Q_heads, K_heads, V_heads] = [Q, K, V].map(split);
  const raw = scores(Q_heads, K_heads);
  const scaled = state.scale ? scale(raw, broken("d_model") ? d_model : Q_heads.shape[2]) : raw;
  const allowed = mask(state, L);
  const weights = softmax(scaled, allowed, { overColumns: broken("axis"), maskLate: broken("late") });
  const heads = attend(weights, V_heads);
  let parts; // only the last step shows what each head adds
  const concat = broken("transpose") ? viewed(heads, L, V.shape[1]) : mergeHeads(heads);
  return {
    X: p.X, Q, K, V, Q_heads, K_heads, V_heads, raw, scores: scaled, allowed, weights, heads, concat,
    output: output(concat, p.W_O, p.b_O), entropy: entropies(weights),
    get contributions() { return (parts ??= contribute(heads, p.W_O)); },
  };
}

// ---- What the tensors are called ----

/** The symbol and the shape of each tensor */
export const NAMES = {
  X: ["X", "(L, d_model)"], Q: ["Q", "(L, h·d_k)"], K: ["K", "(L, h·d_k)"], V: ["V", "(L, h·d_v)"],
  Q_heads: ["Q", "(h, L, d_k)"], K_heads: ["K", "(h, L, d_k)"], V_heads: ["V", "(h, L, d_v)"],
  raw: ["QKᵀ", "(h, L, L)"], scores: ["S", "(h, L, L)"], allowed: ["M", "(L, L)"], weights: ["A", "(h, L, L)"],
  heads: ["head", "(h, L, d_v)"], concat: ["Concat", "(L, h·d_v)"], output: ["Y", "(L, d_model)"],
  contributions: ["headᵢ W_O[i]", "(h, L, d_model)"], entropy: ["H", "(h, L)"],
};
for (const [name, [symbol, shape]] of Object.entries(NAMES)) NAMES[name] = { symbol, shape };

export const STEPS = [
  { name: "X", tensors: ["X"], zh: "输入", en: "input", formula: "X" },
  { name: "QKV", tensors: ["Q", "K", "V"], zh: "线性变换", en: "projection", formula: "Q = X W_Q" },
  { name: "split", tensors: ["Q_heads", "K_heads", "V_heads"], zh: "分头", en: "split", formula: "view, transpose" },
  { name: "scores", tensors: ["raw"], zh: "点积", en: "dot products", formula: "Q Kᵀ" },
  { name: "scaled", tensors: ["scores"], zh: "缩放", en: "scaling", formula: "S = Q Kᵀ / √d_k" },
  { name: "weights", tensors: ["weights"], zh: "Softmax", en: "softmax", formula: "A = softmax(S)" },
  { name: "heads", tensors: ["heads"], zh: "加权求和", en: "weighted sum", formula: "head = A V" },
  { name: "concat", tensors: ["concat"], zh: "拼接", en: "concat", formula: "transpose, view" },
  { name: "output", tensors: ["output"], zh: "输出变换", en: "output", formula: "Y = Concat W_O" },
];

/** Where the number trace[name][index] came from: value = Σ product / divide (a weight: its own product / divide). */
export function whence(trace, p, state, name, index) {
  const [a, b, c] = index, L = trace.X.shape[0], [h, , d_k] = trace.Q_heads.shape, d_v = trace.heads.shape[2];
  const broken = (mistake) => state.breaks.includes(mistake);
  const flat = (shape, at) => at.reduce((n, k, axis) => n * shape[axis] + k, 0);
  const read = (from, at) => { const M = trace[from] || p[from]; return M.data[flat(M.shape, at)]; };
  const one = (from, at) => ({ from: [from, at], with: null, product: read(from, at) });
  const two = (from, at, to, by) => ({ from: [from, at], with: [to, by], product: read(from, at) * read(to, by) });
  const each = (n, term) => Array.from({ length: n }, (_, k) => term(k));
  const bias = (name, at) => (p[name] ? [one(name, [at])] : []);
  const project = (W) => () => [`X[r,:] · W_${W}[:,c] + b_${W}[c]`,
    [...each(trace.X.shape[1], (m) => two("X", [a, m], "W_" + W, [m, b])), ...bias("b_" + W, b)]];
  const split = (from, d) => () => {
    const n = (a * L + b) * d + c; // a view alone keeps the order of the numbers
    return broken("reshape") ? [`${from}.view(h, L, d)`, [one(from, [Math.floor(n / (h * d)), n % (h * d)])]]
      : [`${from}[r, i·d + c]`, [one(from, [b, a * d + c])]];
  };
  const [formula, terms, divide = 1] = ({
    Q: project("Q"), K: project("K"), V: project("V"),
    Q_heads: split("Q", d_k), K_heads: split("K", d_k), V_heads: split("V", d_v),
    raw: () => ["Q[i,r,:] · K[i,c,:]", each(d_k, (k) => two("Q_heads", [a, b, k], "K_heads", [a, c, k]))],
    scores: () => {
      const [root, width] = broken("d_model") ? ["√d_model", trace.X.shape[1]] : ["√d_k", d_k];
      return state.scale ? [`QKᵀ[i,r,c] / ${root}`, [one("raw", index)], Math.sqrt(width)] : ["QKᵀ[i,r,c]", [one("raw", index)]];
    },
    weights: () => {
      const line = each(L, (k) => (broken("axis") ? [a, k, c] : [a, b, k]));
      const seen = line.filter(([, i, j]) => broken("late") || read("allowed", [i, j])).map((at) => one("scores", at));
      const top = Math.max(...seen.map((term) => term.product));
      for (const term of seen) term.product = Math.exp(term.product - top);
      return [`exp S[i,r,c] / Σ exp S[i,${broken("axis") ? ":,c" : "r,:"}]`, seen, seen.reduce((sum, { product }) => sum + product, 0) || 1];
    },
    heads: () => ["A[i,r,:] · V[i,:,c]", each(L, (j) => two("weights", [a, b, j], "V_heads", [a, j, c]))],
    concat: () => {
      const n = a * h * d_v + b;
      return broken("transpose") ? ["head.view(L, h·d_v)", [one("heads", [Math.floor(n / (L * d_v)), Math.floor(n / d_v) % L, n % d_v])]]
        : ["head[⌊c / d_v⌋][r, c mod d_v]", [one("heads", [Math.floor(b / d_v), a, b % d_v])]];
    },
    output: () => ["Concat[r,:] · W_O[:,c] + b_O[c]",
      [...each(h * d_v, (k) => two("concat", [a, k], "W_O", [k, b])), ...bias("b_O", b)]],
    contributions: () => ["head[i][r,:] · W_O[i·d_v + :, c]", each(d_v, (k) => two("heads", [a, b, k], "W_O", [a * d_v + k, c]))],
    entropy: () => ["−Σ A[i,r,:] ln A[i,r,:]", each(L, (j) => {
      const term = one("weights", [a, b, j]);
      return { ...term, product: term.product && -term.product * Math.log(term.product) };
    })],
  }[name] || (() => ["", []]))();
  return { name, index, value: read(name, index), terms, divide, formula };
}

// ---- Numbers for the weights: the same here and in mha/widgets/lab/model.py ----

/** FNV-1a over code points, 32 bits */
export function hash(text) {
  let n = 2166136261;
  for (const letter of text) n = Math.imul(n ^ letter.codePointAt(0), 16777619);
  return n >>> 0;
}

const sequences = new Map(); // name → its numbers so far, and the parts asked for: a slider that comes back finds them
const MOST_KEPT = 2 ** 22; // numbers, 32 MiB
let kept = 0;

/** n numbers with mean 0, always the same for the same name (mulberry32, Box–Muller). Shared: not to be written to. */
export function normal(name, n, deviation = 1) {
  if (kept > MOST_KEPT) { sequences.clear(); kept = 0; }
  const known = sequences.get(name) || { seed: hash(name), numbers: new Float64Array(0), parts: new Map() }, part = `${n}/${deviation}`;
  sequences.set(name, known);
  const uniform = () => {
    known.seed = (known.seed + 0x6d2b79f5) | 0;
    let t = Math.imul(known.seed ^ (known.seed >>> 15), 1 | known.seed);
    t ^= t + Math.imul(t ^ (t >>> 7), 61 | t);
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296; // never 0
  };
  const have = known.numbers.length;
  if (have < n) {
    const more = new Float64Array(n + (n % 2));
    more.set(known.numbers);
    for (let k = have; k < n; k += 2) {
      const radius = Math.sqrt(-2 * Math.log(uniform())), angle = 2 * Math.PI * uniform();
      more[k] = radius * Math.cos(angle);
      more[k + 1] = radius * Math.sin(angle);
    }
    known.numbers = more;
    kept += more.length - have;
  }
  if (!known.parts.has(part)) {
    known.parts.set(part, known.numbers.subarray(0, n).map((x) => x * deviation));
    kept += n;
  }
  return known.parts.get(part);
}

/** A token's own vector: the same token, the same vector, of length √n */
function tokenVector(token, n) {
  const v = normal("token/" + token, n), length = Math.hypot(...v);
  return v.map((x) => (x * Math.sqrt(n)) / length);
}

/** Sine and cosine of a position, n numbers (Vaswani et al. 2017, §3.5, with base 10000) */
const sinusoid = (position, n, base = 10000) => Float64Array.from({ length: n }, (_, c) => {
  const angle = position / base ** ((c - (c % 2)) / n);
  return c % 2 ? Math.cos(angle) : Math.sin(angle);
});

const LINE_END = /[,.;:!?/，。；：！？、]$/;
const HAN = /^[\u3400-\u9fff]$/;

/** [line, column] of each token. Punctuation ends a line; Chinese without any has 5 characters a line, 7 if it has 14. */
export function lines(tokens) {
  const verse = tokens.every((token) => HAN.test(token));
  const width = !verse ? Infinity : tokens.length === 14 ? 7 : 5;
  let line = 0, column = -1;
  return tokens.map((token, i) => {
    column += 1;
    if (column === width || (i && LINE_END.test(tokens[i - 1]))) { line += 1; column = 0; }
    return [line, column];
  });
}

/** The size that the trained weights have */
export const TRAINED = { h: 4, d_k: 8 };
const PARAMETERS = ["X", "W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O"];
const flattened = (M) => M && { shape: M.shape, data: Float64Array.from(M.data) };

/** X, W_Q … W_O and b_Q … b_O for a state. `trained`: trained.json; `given`: what Python sent of a model of yours. */
export function parameters(state, trained = null, given = null) {
  const { tokens, h, d_k, weights, seed } = state, width = h * d_k, L = tokens.length;
  if (weights === "given") return Object.fromEntries(PARAMETERS.map((name) => [name, flattened(given[name])]));
  const p = { X: matrix(L, width) };
  const at = weights === "trained" ? lines(tokens) : null;
  tokens.forEach((token, i) => p.X.data.set({
    // every head's slice has the same length, so equal tokens score highest; no position
    identity: () => Array.from({ length: h }, (_, head) => [...tokenVector(`${token}/${head}`, d_k).map((x) => x * 2 / d_k ** 0.25)]).flat(),
    random: () => { const wave = sinusoid(i, width); return normal("token/" + token, width).map((x, c) => x + wave[c]); },
    trained: () => [...tokenVector(token, 8), ...sinusoid(i, 12, 10), ...sinusoid(at[i][0], 6, 10), ...sinusoid(at[i][1], 6, 10)],
  }[weights](), i * width));
  for (const letter of "QKVO") {
    const W = p["W_" + letter] = matrix(width, width), b = p["b_" + letter] = matrix(width);
    if (weights === "identity") for (let k = 0; k < width; k++) W.data[k * width + k] = 1;
    else if (weights === "random") W.data = normal(`${seed}/W_${letter}`, width * width, 1 / Math.sqrt(width));
    else { W.data.set(trained["W_" + letter].data); b.data.set(trained["b_" + letter].data); }
  }
  return p;
}

// ---- The state: from whatever came in to something that can be drawn ----

export const DEFAULT = {
  tokens: ["国", "破", "山", "河", "在"], unit: "characters", h: 4, d_k: 8, scale: true,
  mask: "none", padding: 4, drawn: null, weights: "random", seed: 0, step: 0, head: 0, row: 0, column: 0, breaks: [],
};
export const WIDTHS = [1, 2, 4, 8, 16, 32];
export const BREAKS = ["reshape", "transpose", "d_model", "axis", "late"];
const MOST_TOKENS = 16, LONGEST_WORD = 24;

const SEGMENTER = globalThis.Intl && Intl.Segmenter ? new Intl.Segmenter() : null; // else code points
const graphemes = (text) => (SEGMENTER ? Array.from(SEGMENTER.segment(text), (s) => s.segment) : [...text]);

function pieces(text, unit) {
  const plain = text.slice(0, 2000).replace(/\p{Cc}/gu, " ").replace(/(?![\u200c\u200d])[\p{Cf}\p{Cs}\p{Co}]/gu, "").normalize("NFC");
  const parts = unit === "words"
    ? plain.split(/\s+/u).map((word) => graphemes(word).slice(0, LONGEST_WORD).join(""))
    : graphemes(plain);
  return parts.map((part) => part.trim()).filter((part) => /[\p{L}\p{N}\p{P}\p{S}]/u.test(part));
}

/** A text as tokens, at most 16: its characters as a reader counts them, or its words */
export const tokenise = (text, unit = "characters") => pieces(String(text), unit).slice(0, MOST_TOKENS);

/** Any nonsense → a valid state, and what was changed: said = [{key, zh, en}] */
export function clean(raw, given = null) {
  const from = raw && typeof raw === "object" ? raw : {}, said = [];
  const say = (key, zh, en) => { said.push({ key, zh: `${zh}。`, en: `${en}.` }); };
  const is = (key, rule, value) => say(key, `${key} 应为 ${rule[0]}，这里用 ${value}`, `${key} must be ${rule[1]}: ${value} is used`);
  const missing = (key) => from[key] === undefined || from[key] === null;
  const choice = (key, options) => {
    if (options.includes(from[key])) return from[key];
    if (!missing(key)) is(key, [options.join("、"), options.join(", ")], DEFAULT[key]);
    return DEFAULT[key];
  };
  const whole = (key, low, high) => {
    const asked = missing(key) ? DEFAULT[key] : from[key];
    const number = typeof asked === "number" && Number.isFinite(asked) ? Math.round(asked) : DEFAULT[key];
    const value = Math.min(Math.max(number, low), high);
    if (!missing(key) && value !== from[key]) is(key, [`${low} 到 ${high} 的整数`, `a whole number from ${low} to ${high}`], value);
    return value;
  };

  let weights = choice("weights", ["random", "identity", "trained", "given"]);
  if (weights === "given" && !given) {
    weights = "random";
    say("weights", "这里没有给出的模型，改用随机权重", "No model was given here: random weights are used");
  }
  const unit = choice("unit", ["characters", "words"]);
  let tokens = DEFAULT.tokens;
  if (weights === "given") tokens = given.tokens;
  else if (!missing("tokens")) {
    const texts = (Array.isArray(from.tokens) ? from.tokens : [from.tokens]).filter((t) => typeof t === "string");
    const all = texts.flatMap((text) => pieces(text, unit)), cut = texts.some((text) => text.length > 2000);
    tokens = all.slice(0, MOST_TOKENS);
    if (!all.length) {
      tokens = DEFAULT.tokens;
      say("tokens", `没有可用的文字，改为“${tokens.join("")}”`, `No text to use: ${tokens.join("")} is used`);
    } else if (all.length > MOST_TOKENS) {
      const n = cut ? "2000+" : all.length;
      say("tokens", `最多 ${MOST_TOKENS} 个词元，只用前 ${MOST_TOKENS} 个（共 ${n} 个）`, `At most ${MOST_TOKENS} tokens: the first ${MOST_TOKENS} of ${n} are used`);
    }
    if (unit === "words" && texts.some((text) => text.split(/\s+/u).some((word) => graphemes(word.slice(0, 2000)).length > LONGEST_WORD)))
      say("tokens", `长词截到 ${LONGEST_WORD} 个字符`, `Long words are cut to ${LONGEST_WORD} characters`);
  }
  const L = tokens.length, fixed = { trained: TRAINED, given }[weights];
  let { h, d_k } = fixed || { h: whole("h", 1, 8), d_k: whole("d_k", 1, 32) };
  if (fixed) {
    if ((!missing("h") && from.h !== h) || (!missing("d_k") && from.d_k !== d_k))
      say("h", `这组权重的 h = ${h}，d_k = ${d_k}，不能改`, `These weights have h = ${h} and d_k = ${d_k}, fixed`);
  } else if (!WIDTHS.includes(d_k)) {
    d_k = Math.max(...WIDTHS.filter((width) => width <= d_k));
    is("d_k", [WIDTHS.join("、"), WIDTHS.join(", ")], d_k);
  }
  const cell = (i, j) => (from.drawn && from.drawn[i] && from.drawn[i][j] === 0 ? 0 : 1); // what was not drawn is allowed
  const listed = Array.isArray(from.breaks) ? from.breaks : [];
  if ((!missing("breaks") && listed !== from.breaks) || listed.some((name) => !BREAKS.includes(name)))
    is("breaks", [BREAKS.join("、"), BREAKS.join(", ")], listed.filter((name) => BREAKS.includes(name)).join(", ") || "—");
  if (!missing("drawn") && !Array.isArray(from.drawn)) is("drawn", ["0 和 1 的表", "a table of 0 and 1"], "1");
  const state = {
    tokens: [...tokens], unit, h, d_k, scale: choice("scale", [true, false]),
    mask: choice("mask", ["none", "causal", "padding", "drawn"]),
    padding: missing("padding") ? Math.max(1, L - 1) : whole("padding", 0, L),
    drawn: tokens.map((_, i) => tokens.map((_, j) => cell(i, j))),
    weights, seed: whole("seed", 0, 999999), step: whole("step", 0, 8), head: whole("head", 0, h - 1),
    row: whole("row", 0, L - 1), column: whole("column", 0, Math.max(h * d_k, L, given ? given.X.shape[1] : 0) - 1),
    breaks: BREAKS.filter((name) => listed.includes(name)),
  };
  return { state, said };
}

// ---- The address ----

const SHORT = {
  tokens: "t", unit: "u", h: "h", d_k: "d", scale: "s", mask: "m", padding: "p", drawn: "g", weights: "w", seed: "r",
  step: "step", head: "head", row: "row", column: "col", breaks: "x",
};

/** The state in one line, only what differs from the default: "h=8&m=causal" */
export function toAddress(state) {
  const said = { ...state, scale: Number(state.scale), breaks: state.breaks.join(".") };
  const joined = state.tokens.join(state.unit === "words" ? " " : "");
  said.tokens = state.unit === "words" || tokenise(joined).join(" ") === state.tokens.join(" ") ? joined : state.tokens.join(" ");
  said.drawn = state.drawn.map((row) => parseInt(row.join(""), 2).toString(36)).join(".");
  const usual = { ...DEFAULT, tokens: DEFAULT.tokens.join(""), scale: 1, breaks: "" };
  usual.padding = Math.max(1, state.tokens.length - 1);
  if (state.mask !== "drawn") usual.drawn = said.drawn;
  return Object.keys(SHORT).filter((key) => said[key] !== usual[key])
    .map((key) => `${SHORT[key]}=${encodeURIComponent(said[key]).replace(/%20/g, "+")}`).join("&");
}

/** Any text → what it asks for; `clean` makes a state of it */
export function fromAddress(text) {
  const found = {}, raw = {};
  for (const pair of String(text).replace(/^[#?]+/, "").split("&")) {
    const [key, ...rest] = pair.split("=");
    try { found[key] = decodeURIComponent(rest.join("=").replace(/\+/g, " ")); } catch { found[key] = ""; }
  }
  for (const [key, short] of Object.entries(SHORT)) {
    const value = Object.hasOwn(found, short) ? found[short] : undefined;
    if (value === undefined) continue;
    if (key === "scale") raw.scale = value === "1" ? true : value === "0" ? false : value;
    else if (key === "breaks") raw.breaks = value.split(".").filter(Boolean);
    else if (key === "drawn") {
      const rows = value.split(".").slice(0, MOST_TOKENS).map((row) => parseInt(row, 36));
      raw.drawn = rows.map((n) => Array.from({ length: rows.length }, (_, j) => (Number.isInteger(n) ? Math.floor(n / 2 ** (rows.length - 1 - j)) % 2 : 1)));
    } else raw[key] = typeof DEFAULT[key] === "number" ? (/^-?\d{1,9}$/.test(value) ? Number(value) : value) : value;
  }
  return raw;
}

// ---- The same numbers with mha ----

/** Python that computes this state with `mha` and prints the output. A given model is `model`, its input `X`. */
export function code(state) {
  const { tokens, h, d_k, weights, breaks, seed } = state, L = tokens.length, broken = (name) => breaks.includes(name);
  const mask = {
    none: "None", causal: `causal_mask(${L})`, padding: `padding_mask([${state.padding}], ${L})`,
    drawn: `torch.tensor(${JSON.stringify(state.drawn)}).bool()`,
  }[state.mask];
  const late = broken("late") && state.mask !== "none", axis = broken("axis") ? "  # broken: over columns" : "";
  const model = `lab_model(${JSON.stringify(tokens)}, h=${h}, d_k=${d_k}, weights="${weights}", seed=${seed})`;
  const divided = !state.scale ? "  # not scaled" : broken("d_model") ? " / attention.d_model**0.5  # broken: √d_model" : " / attention.d_k**0.5";
  const whole = state.scale && !breaks.length;
  return ["import torch", "", "from mha import causal_mask, padding_mask, steps", "from mha.widgets import lab_model", "",
    weights === "given" ? "attention = model  # your own, and X its input" : `attention, X = ${model}`,
    `mask = ${mask}`,
    ...(whole ? ["output = attention.trace(X, mask=mask).output"] : [
      "Q, K, V = (steps.project(X, W.weight.T, W.bias) for W in (attention.W_Q, attention.W_K, attention.W_V))",
      broken("reshape") ? `Q, K, V = (x.view(1, ${h}, ${L}, -1) for x in (Q, K, V))  # broken: no transpose`
        : `Q, K, V = (steps.split_heads(x, ${h}) for x in (Q, K, V))`,
      `scores = Q @ K.mT${divided}`,
      `allowed = (torch.ones(${L}, ${L}).bool() if mask is None else mask).expand(scores.shape)`,
      late ? `weights = scores.softmax(${axis ? -2 : -1}) * allowed  # broken: masked too late${axis && ", over columns"}`
        : axis ? `weights = steps.softmax(scores.mT, allowed.mT).mT${axis}` : "weights = steps.softmax(scores, allowed)",
      broken("transpose") ? `concat = (weights @ V).reshape(1, ${L}, -1)  # broken: no transpose back` : "concat = steps.merge_heads(weights @ V)",
      "output = steps.output(concat, attention.W_O.weight.T, attention.W_O.bias)",
    ]), "print(output[0])", ""].join("\n");
}
