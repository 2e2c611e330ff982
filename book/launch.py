"""The buttons under a title that take the page's notebook elsewhere: opened in a place on the web, or downloaded."""

from book.address import open_in
from book.languages import pick


def row(docname: str, lang: str) -> str:
    """The buttons for one page. Places come only where the repository is known; the download always."""
    name = docname.rpartition("/")[2]
    places = "".join(
        f'<a href="{address}" aria-label="{pick(f"在 {place} 中打开 | Open in {place}", lang)}">{place}</a>'
        for place, address in open_in(name, lang).items()
    )
    about = pick("运行这一页 | Run this page", lang)
    way = "../" * docname.count("/") + f"notebooks/{name}.ipynb"
    named = pick("下载笔记本 | Download the notebook", lang)
    download = f'<a href="{way}" download aria-label="{named}">{pick("下载 | Download", lang)}</a>'
    return f'<nav class="mha-launch" aria-label="{about}"><span>{about}</span>{places}{download}</nav>'
