// The door opens by itself for a reader who chose a language before, or whose browser asks for one that is here.
// It leaves no trace in the history, so that Back leads out of the book. Everybody else chooses.
{
  const links = [...document.querySelectorAll("[data-language]")];
  let kept = null;
  try { kept = localStorage.getItem("mha-language"); } catch { /* private mode */ }
  const wishes = [kept, ...navigator.languages.map((wish) => wish.toLowerCase().split("-")[0])];
  const wanted = wishes.map((wish) => links.find((link) => link.dataset.language === wish)).find(Boolean);
  if (wanted) location.replace(wanted.href);
  for (const link of links) {
    link.addEventListener("click", (event) => {
      try { localStorage.setItem("mha-language", link.dataset.language); } catch { /* private mode */ }
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // another tab
      event.preventDefault();
      location.replace(link.href);
    });
  }
}
