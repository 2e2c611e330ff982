// A host shows this page at any depth, so its links are absolute. Where the build did not know the book's path, the
// address that was asked for tells it: what stands before the language. The page speaks the language asked for.
{
  const page = document.documentElement;
  const asked = location.pathname.match(/^(.*?\/)(zh|en)(?:\/|$)/);
  const project = location.hostname.endsWith(".github.io") ? location.pathname.match(/^\/[^/]+\//)?.[0] : null;
  const base = page.dataset.base === "/" ? asked?.[1] ?? project ?? "/" : page.dataset.base;
  for (const link of document.querySelectorAll("a")) {
    link.pathname = base + link.pathname.slice(page.dataset.base.length);
  }
  let kept = null;
  try { kept = localStorage.getItem("mha-language"); } catch { /* private mode */ }
  const chosen = document.querySelector(`[data-language="${asked?.[2] ?? kept}"]`);
  if (chosen) {
    for (const section of document.querySelectorAll("section")) section.hidden = section !== chosen;
    page.lang = chosen.lang;
    document.title = chosen.querySelector("h1").textContent;
  }
}
