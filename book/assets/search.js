// Search without a server: the index, a script of its own, is fetched when the reader first searches.
// The book is read through at each query. What looks things up stands first, what shows it below.

(() => {
  const CJK = "\\u3400-\\u9fff";
  const TERM = new RegExp(`[${CJK}]+|[^\\s${CJK}，。；：！？、“”‘’（）《》【】…]+`, "g");
  const WORD = /[a-z][a-z0-9]*/g;
  const SAYS = /[\p{L}\p{N}\p{S}]/u;
  const quote = (text) => text.replace(/[.*+?^${}()|[\]\\\/-]/g, "\\$&");

  // Full-width as half-width, capitals as small letters, ᵀ as t: character by character, so that places keep.
  function fold(text) {
    return text.replace(new RegExp(`[^\\x00-\\x7f${CJK}]`, "g"), (c) => {
      const plain = c.normalize("NFKC");
      return plain.length === 1 ? plain : c;
    }).toLowerCase();
  }

  function prepare(index) {
    index.words = new Set();
    for (const [, , sections] of index.pages) {
      for (const section of sections) {
        section.title = fold(section[1]);
        section.text = fold(section[2]);
        for (const word of `${section.title} ${section.text}`.match(WORD) ?? []) index.words.add(word);
      }
    }
    index.everything = index.pages.map(([, , sections]) => sections.map((s) => `${s.title}\n${s.text}`).join("\n")).join("\n");
    index.stem = index.Stemmer ? memo(((stemmer) => (word) => stemmer.stemWord(word))(new index.Stemmer())) : (word) => word;
    return index;
  }

  function memo(f) {
    const known = new Map();
    return (x) => { if (!known.has(x)) known.set(x, f(x)); return known.get(x); };
  }

  // A query's terms: runs of Chinese (traditional as simplified), words, identifiers. TeX's braces say nothing.
  function terms(query, index) {
    const typed = [...fold(query).replace(/[${}\\"]/g, "")].map((c) => index.simple[c] ?? c).join("");
    const found = (typed.match(TERM) ?? [])
      .map((term) => term.replace(/^[.,;:!?'`]+|[.,;:!?'`]+$/g, ""))
      .flatMap((term) => (/^[a-z]+(-[a-z]+)+$/.test(term) ? term.split("-") : [term]))
      .filter((term) => SAYS.test(term));
    const telling = found.filter((term) => !index.common.includes(term));
    return [...new Set(telling.length ? telling : found)];
  }

  // The regular expressions for one term, the surest first; each with what a hit is worth.
  function patterns(term, index, last) {
    if (new RegExp(`[${CJK}]`).test(term)) return [[new RegExp(quote(term), "g"), 3]];
    const whole = (words) => {
      const left = /^[a-z0-9]/.test(words[0]) ? "(?:^|[^a-z0-9])" : "";
      const right = /[a-z0-9]$/.test(words[0]) ? "(?![a-z0-9])" : "";
      return new RegExp(`(${left})(${words.map(quote).join("|")})${right}`, "g");
    };
    const result = [[whole([term]), 3]];
    if (!/^[a-z][a-z0-9]*$/.test(term)) return result;
    const others = [...index.words].filter((word) => word !== term && word.startsWith(term.slice(0, 2)));
    const stem = index.stem(term);
    const kin = others.filter((word) => index.stem(word) === stem);
    if (kin.length) result.push([whole(kin), 2]);
    const longer = term.length > 2 && last ? others.filter((word) => word.startsWith(term) && !kin.includes(word)) : [];
    if (longer.length) result.push([whole(longer), 1]);
    return result;
  }

  // Places of a pattern's hits, as [from, to].
  function places(pattern, text) {
    return [...text.matchAll(pattern)].map((hit) => {
      const from = hit.index + (hit[1]?.length ?? 0);
      return [from, from + (hit[2] ?? hit[0]).length];
    });
  }

  // A run of Chinese that stands nowhere as a whole is cut into the longest pieces that do; null if one is left over.
  function cut(run, index) {
    const pieces = [];
    let rest = run.replace(/^(?:为什么|怎么|如何|什么是)(?=.)/, "").replace(/(.)(?:是什么|吗|呢)$/, "$1");
    while (rest) {
      let size = Math.min(rest.length, 12);
      while (size > 1 && !index.everything.includes(rest.slice(0, size))) size--;
      if (size > 1) pieces.push(rest.slice(0, size));
      else if (!/[的了要是在和与]/.test(rest[0])) return null;
      rest = rest.slice(size);
    }
    return pieces.length ? pieces : null;
  }

  // For each term the pieces to look for, or null where the book does not know a term.
  function known(query, index) {
    const asked = terms(query, index);
    const result = [];
    for (const [i, term] of asked.entries()) {
      const there = (t) => patterns(t, index, i === asked.length - 1).some(([pattern]) => index.everything.search(pattern) >= 0);
      const spelt = `${term[0]}_${term.slice(1)}`; // dk, wo, dmodel
      const pieces = there(term) ? [term]
        : new RegExp(`[${CJK}]`).test(term) ? cut(term, index)
        : /^[a-z]{2,6}$/.test(term) && there(spelt) ? [spelt] : null;
      if (!pieces) return null;
      result.push(pieces);
    }
    return result.length ? result : null;
  }

  // Pages that hold something of every term, the best first:
  // { terms, pages: [{ address, title, sections: [{ anchor, title, text, hits, titleHits }] }] }
  function search(query, index) {
    const asked = known(query, index);
    if (!asked) return { terms: [], pages: [] };
    const looked = asked.flatMap((pieces, i) => pieces.map((piece) => ({ term: i, choices: patterns(piece, index, i === asked.length - 1) })));
    const pages = [];
    for (const [address, title, sections] of index.pages) {
      const held = new Set(), found = [];
      sections.forEach((section, place) => {
        const hits = [], titleHits = [];
        let score = 0, count = 0;
        looked.forEach(({ term, choices }, i) => {
          let best = 0;
          for (const [pattern, worth] of choices) {
            const inTitle = places(pattern, section.title), inText = places(pattern, section.text);
            titleHits.push(...inTitle);
            hits.push(...inText.map(([from, to]) => [from, to, i]));
            if (inTitle.length) best = Math.max(best, worth * (place ? 8 : 12));
            if (inText.length) best = Math.max(best, worth * (1 + Math.log2(1 + inText.length)));
          }
          if (best) { held.add(term); count++; score += best; }
        });
        if (!count) return;
        const [anchor, heading, text] = section;
        const byPlace = (a, b) => a[0] - b[0];
        found.push({ anchor, title: heading, text, hits: hits.sort(byPlace), titleHits: titleHits.sort(byPlace), score: score * (count === looked.length ? 3 : 1) });
      });
      if (held.size < asked.length) continue;
      found.sort((a, b) => b.score - a.score);
      pages.push({ address, title, sections: found, score: found[0].score + Math.log2(found.length) });
    }
    return { terms: asked, pages: pages.sort((a, b) => b.score - a.score) };
  }

  // The stretch of text that holds the most different terms: [from, to].
  function passage({ text, hits }, width) {
    if (!hits.length) return [0, Math.min(text.length, width)];
    let best = 0, most = 0;
    hits.forEach(([from], i) => {
      const distinct = new Set(hits.slice(i).filter(([at]) => at < from + width * 0.7).map(([, , term]) => term)).size;
      if (distinct > most) { most = distinct; best = i; }
    });
    let from = Math.max(0, hits[best][0] - Math.round(width / 4));
    const before = text.slice(from, hits[best][0]);
    const start = [/[。？！]|[.?!] /g, /[，；：]/g, / /g].map((edge) => [...before.matchAll(edge)].at(-1)).find(Boolean);
    if (from && start) from += start.index + start[0].length;
    let to = Math.min(text.length, from + width);
    if (to < text.length && /[A-Za-z0-9]/.test(text[to])) to = Math.max(text.lastIndexOf(" ", to), hits[best][1]);
    return [from, to];
  }

  // ---- what the reader sees

  const page = document.documentElement;
  const zh = page.lang.startsWith("zh");
  const WORDS = zh
    ? { found: (pages, places) => `${pages} 页，${places} 处`, none: (q) => `全书没有找到“${q}”。换个短一点的词试试。`, apart: (pieces) => `；没有连在一起的，分开查了${pieces.map((piece) => `“${piece}”`).join("")}`,
      more: (n) => `本页还有 ${n} 处`, loading: "正在读取全书……", failed: "搜索索引没有载入，请刷新页面再试。", glossary: "看看术语表" }
    : { found: (pages, places) => `${places} passage${places === 1 ? "" : "s"} on ${pages} page${pages === 1 ? "" : "s"}`,
      none: (q) => `Nothing in the book matches “${q}”. Try a shorter word.`,
      apart: (pieces) => `; not found as one, so looked for ${pieces.map((piece) => `“${piece}”`).join(" ")}`, more: (n) => `${n} more on this page`,
      loading: "Reading the book…", failed: "The search index did not load. Reload the page and try again.", glossary: "See the glossary" };
  const root = page.dataset.content_root ?? "./";
  const SHOWN = 3;
  let loading = null;

  function load() {
    loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = `${root}search-index.js`;
      const fail = () => { loading = null; script.remove(); reject(new Error(script.src)); };
      script.onload = () => (window.MHA_SEARCH ? resolve(prepare(window.MHA_SEARCH)) : fail()); // a network's own page may come instead
      script.onerror = fail;
      document.head.append(script);
    });
    return loading;
  }

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children.filter((child) => child !== ""));
    return made;
  }

  // Text with its hits marked; `from` is where the text begins in what was searched.
  function marked(text, hits, from = 0) {
    const parts = [];
    let at = 0;
    for (const [start, end] of hits) {
      if (start - from < at || end - from > text.length) continue;
      parts.push(text.slice(at, start - from), element("mark", {}, text.slice(start - from, end - from)));
      at = end - from;
    }
    return [...parts, text.slice(at)];
  }

  function item(address, section, width) {
    const [from, to] = passage(section, width);
    const shown = section.text.slice(from, to).trimEnd();
    return element("li", {},
      element("a", { href: `${root}${address}#${section.anchor}` }, ...marked(section.title, section.titleHits)),
      shown && element("p", {}, from ? "…" : "", ...marked(shown, section.hits, from), to < section.text.length ? "…" : ""));
  }

  function group({ address, title, sections }) {
    const width = zh ? 90 : 190;
    const items = sections.map((section) => item(address, section, width));
    const lists = [element("ol", {}, ...items.slice(0, SHOWN))];
    if (items.length > SHOWN) {
      lists.push(element("details", {}, element("summary", {}, WORDS.more(items.length - SHOWN)), element("ol", {}, ...items.slice(SHOWN))));
    }
    return element("li", {}, element("p", { className: "mha-page" }, title), ...lists);
  }

  function bringToLife(box) {
    const input = box.querySelector("input"), status = box.querySelector(".mha-found"), list = box.querySelector(".mha-results");
    const onPage = box.dataset.search === "page";
    let turn = 0, timer = 0;

    async function show() {
      const mine = ++turn, query = input.value.trim();
      if (!query) { status.textContent = ""; list.replaceChildren(); return; }
      let index;
      try {
        if (!window.MHA_SEARCH) status.textContent = WORDS.loading;
        index = await load();
      } catch { if (mine === turn) status.textContent = WORDS.failed; return; }
      if (mine !== turn) return; // the reader has typed on
      const began = performance.now();
      const { terms: asked, pages } = search(query, index);
      list.replaceChildren(...pages.map(group));
      box.dataset.took = performance.now() - began;
      const places = pages.reduce((sum, { sections }) => sum + sections.length, 0);
      const apart = asked.filter((pieces) => pieces.length > 1).map(WORDS.apart);
      status.replaceChildren(pages.length ? WORDS.found(pages.length, places) + apart.join("") : WORDS.none(query));
      if (!pages.length) status.append(" ", element("a", { href: `${root}chapters/glossary.html` }, WORDS.glossary));
      box.dataset.query = query;
      if (onPage) { try { history.replaceState(null, "", `?${new URLSearchParams({ q: query })}`); } catch { /* from a folder */ } }
    }

    input.addEventListener("input", (event) => {
      if (event.isComposing) return; // pinyin on its way to characters
      clearTimeout(timer);
      timer = setTimeout(show, 60);
    });
    input.addEventListener("compositionend", show);
    input.addEventListener("focus", () => load().catch(() => {}), { once: true });
    box.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      const stops = [input, ...list.querySelectorAll("a, summary")].filter((stop) => stop.checkVisibility?.() ?? true);
      const next = stops[stops.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1)];
      if (next && stops.includes(document.activeElement)) { event.preventDefault(); next.focus(); }
    });
    box.addEventListener("submit", (event) => {
      if (!input.value.trim()) event.preventDefault();
      else if (onPage) { event.preventDefault(); show(); }
    });
    if (onPage) {
      input.value = new URLSearchParams(location.search).get("q") ?? "";
      input.focus();
      show();
    } else {
      list.addEventListener("click", (event) => { if (event.target.closest("a")) box.close(); });
      box.addEventListener("click", (event) => { if (event.target === box) box.close(); });
    }
  }

  document.querySelectorAll("[data-search]").forEach(bringToLife);

  const dialog = document.getElementById("mha-search");
  function open(event) {
    event.preventDefault();
    event.stopImmediatePropagation();
    const here = document.querySelector("[data-search=page] input");
    if (here) { here.focus(); here.select(); return; }
    if (!dialog.open) dialog.showModal();
    dialog.querySelector("input").select();
  }
  addEventListener("click", (event) => { if (event.target.closest?.(".search-button__button")) open(event); }, true);
  addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey) open(event);
  }, true);
})();
