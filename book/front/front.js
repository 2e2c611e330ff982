// The reader chooses a language; the choice (or the browser's language) is marked and first in the tab order.
const links = [...document.querySelectorAll("[data-language]")];
let kept = null;
try { kept = localStorage.getItem("mha-language"); } catch { /* private mode */ }
const wanted = kept ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en");
for (const link of links) {
  const language = link.dataset.language;
  if (language === wanted) { link.classList.add("chosen"); link.parentElement.prepend(link); }
  link.addEventListener("click", () => { try { localStorage.setItem("mha-language", language); } catch { /* private mode */ } });
}
