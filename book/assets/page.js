// What a page does besides being read: light and dark, the two tables of contents, copy buttons.
(() => {
  "use strict";
  const root = document.documentElement;
  const zh = root.lang.startsWith("zh");
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];

  // Light, dark or as the system has it. The choice was applied before the first paint; here it can be changed.
  const system = matchMedia("(prefers-color-scheme: dark)");
  const modes = ["auto", "light", "dark"];
  const named = zh ? { auto: "跟随系统", light: "浅色", dark: "深色" } : { auto: "as the system", light: "light", dark: "dark" };
  function paint(mode) {
    root.dataset.mode = mode;
    root.dataset.theme = mode === "auto" ? (system.matches ? "dark" : "light") : mode;
    for (const button of all(".theme-switch-button")) {
      button.title = `${zh ? "明暗：" : "Colours: "}${named[mode]}`;
      button.setAttribute("aria-label", button.title);
    }
  }
  paint(modes.includes(root.dataset.mode) ? root.dataset.mode : "auto");
  system.addEventListener("change", () => paint(root.dataset.mode));
  all(".theme-switch-button").forEach((button) => button.addEventListener("click", () => {
    const next = modes[(modes.indexOf(root.dataset.mode) + 1) % modes.length];
    try { localStorage.setItem("mha-mode", next); } catch { /* private mode */ }
    paint(next);
  }));

  // On a narrow screen a table of contents opens as a dialog that borrows the column's content.
  function drawer(button, column, dialog, wide) {
    if (!button || !column || !dialog) return;
    const move = (from, to) => {
      to.append(...from.childNodes);
      to.classList.add(...from.classList);
      from.className = "";
    };
    button.setAttribute("aria-expanded", "false");
    dialog.setAttribute("aria-label", button.title);
    button.addEventListener("click", () => {
      if (wide && wide.matches) { column.classList.toggle("pst-sidebar-hidden"); return; }
      move(column, dialog);
      dialog.showModal();
      button.setAttribute("aria-expanded", "true");
    });
    dialog.addEventListener("close", () => { move(dialog, column); button.setAttribute("aria-expanded", "false"); });
    dialog.addEventListener("click", (event) => {
      const link = event.target.closest("a");
      if (event.target === dialog || (link && link.hash && link.pathname === location.pathname)) dialog.close();
    });
  }
  const at = (selector) => document.querySelector(selector);
  drawer(at(".primary-toggle"), at("#pst-primary-sidebar"), at("#pst-primary-sidebar-modal"), matchMedia("(min-width: 992px)"));
  drawer(at(".secondary-toggle"), at("#pst-secondary-sidebar"), at("#pst-secondary-sidebar-modal"), null);

  // The section being read is marked in the page's table of contents.
  const entries = new Map(all("#pst-page-toc-nav a[href^='#']").map((link) => [document.getElementById(decodeURIComponent(link.hash.slice(1))), link]));
  entries.delete(null);
  if (entries.size) {
    const seen = new IntersectionObserver((changes) => {
      const now = changes.filter((change) => change.isIntersecting).pop();
      if (!now) return;
      for (const [section, link] of entries) {
        const here = section === now.target;
        link.classList.toggle("active", here);
        if (here) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
      }
    }, { rootMargin: "0px 0px -70% 0px" });
    for (const section of entries.keys()) seen.observe(section);
  }

  // Code can be taken along. Outputs cannot: nobody pastes them.
  for (const code of all(".bd-article .highlight > pre")) {
    if (code.closest(".cell_output")) continue;
    const button = document.createElement("button");
    const words = zh ? ["复制", "已复制"] : ["Copy", "Copied"];
    button.type = "button";
    button.className = "mha-copy";
    button.title = words[0];
    button.setAttribute("aria-label", words[0]);
    button.append(Object.assign(document.createElement("i"), { className: "mha-icon mha-copy-sheets" }));
    button.addEventListener("click", async () => {
      const text = code.textContent.replace(/\n$/, "");
      if (navigator.clipboard) await navigator.clipboard.writeText(text);
      else {
        getSelection().selectAllChildren(code); // no clipboard without https
        document.execCommand("copy");
        getSelection().removeAllRanges();
      }
      button.firstChild.className = "mha-icon mha-check";
      button.setAttribute("aria-label", words[1]);
      setTimeout(() => { button.firstChild.className = "mha-icon mha-copy-sheets"; button.setAttribute("aria-label", words[0]); }, 2000);
    });
    code.parentElement.append(button);
  }

  // Whatever scrolls sideways can be reached and moved with the keyboard. It is measured when it comes near.
  const near = new IntersectionObserver((changes) => changes.forEach(({ isIntersecting, target }) => {
    if (!isIntersecting) return;
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0; else target.removeAttribute("tabindex");
  }), { rootMargin: "300px" });
  const watch = () => all(".bd-article pre, .katex-display, .pst-scrollable-table-container").forEach((box) => { near.unobserve(box); near.observe(box); });
  watch();
  addEventListener("resize", watch);

  // On paper nothing is folded and the ground is white.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    folded.forEach((box) => { box.open = true; });
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => { folded.forEach((box) => { box.open = false; }); paint(root.dataset.mode); });
})();
