"""The whole book as chapters, read from the built pages: what PDF and EPUB are both made from.

Nothing runs a second time. What needs a web page becomes what paper can hold: a live figure turns into its
first frame with a caption, and solutions move from below their exercises to a chapter of their own at the end.
"""

import html
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag
from bs4.filter import SoupStrainer

from book.formulas import as_text
from book.languages import pick

ROOT = Path(__file__).parent.parent.parent
SOLUTION = "答案 | Solution"  # the title of a box that holds one
SOLUTIONS = "solutions"  # the name of their chapter
LAB = (
    "{place}，这里是一个可以动手的实验台：改句子，调 h 和 d_k，一步一步看每个数从哪里来。上图是它打开时的样子。 | "
    "{place} there is a lab here: edit the sentence, move h and d_k, and follow every number through the steps. "
    "Above is what it shows when it opens."
)
# What only a web page can use
DROPPED = ".headerlink, script, style, button, .toctree-wrapper, .d-print-none, [hidden], .mha-launch"
NUMBER = re.compile(r"\d+(?=\s*\.$)")
PICTURE = ("class", "src", "alt", "width", "height")
KATEX = '<span class="katex">'
SPAN = re.compile(r"<(/?)span\b[^>]*>")
LIFTED = re.compile(r'<span class="katex" data-tex="([^"]*)" data-whole="([^"]*)"></span>')
SVG_NAMES = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio"}  # html.parser lowers their case


class Chapter(NamedTuple):
    """One chapter: `name` "2-3-attention", `title` "2.3 …", the caption of the part that it opens, its <section>."""

    name: str
    title: str
    part: str | None
    body: Tag


class Book(NamedTuple):
    """One language's book. `live` is the address of its site, "https://…/zh/", or None where nobody knows it."""

    lang: str
    title: str
    author: str
    chapters: list[Chapter]
    live: str | None

    @property
    def full_title(self) -> str:
        """Title and subtitle, "Title: subtitle", as the first chapter, the cover of the site, has them."""
        return self.chapters[0].title


class Solved(NamedTuple):
    """A solution taken out of a chapter: the section it stood in, its exercise's number, and what it says."""

    section: str
    number: str
    key: str
    box: Tag


def anchor(name: str, within: str = "") -> str:
    """The id of a chapter in the assembled book, or of the element `within` it."""
    return f"c-{name}--{within}" if within else f"c-{name}"


def read(site: Path, lang: str, address: str | None = None) -> Book:
    """The book in one language from the built `site`, published at `address`. FileNotFoundError: a page is missing."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    live = urljoin(address, f"{lang}/") if address else None
    contents = list(_contents(lang))
    known = {Path(doc).name for doc, _ in contents}
    chapters: list[Chapter] = []
    solved: list[tuple[Chapter, list[Solved]]] = []
    for doc, part in contents:
        page = site / lang / f"{doc}.html"
        body = _article(page)
        chapter = Chapter(page.stem, plain(_one(body, "h1")), part, body)
        here = urljoin(live, f"{doc}.html") if live else None
        _still(body, lang, here)
        _unfold(body)
        _simplify(body, page)
        _join(body, chapter.name, known, here)
        if found := _take_solutions(chapter, lang):
            solved.append((chapter, found))
        chapters.append(chapter)
    back = next(i for i in range(len(chapters), 0, -1) if chapters[i - 1].title[0].isdigit())
    chapters.insert(back, _solutions(solved, lang))
    if len(chapters) > back + 1:  # solutions open the back matter
        chapters[back] = chapters[back]._replace(part=chapters[back + 1].part)
        chapters[back + 1] = chapters[back + 1]._replace(part=None)
    return Book(lang, pick(config["title"], lang), pick(config["author"], lang), chapters, live)


def plain(tag: Tag) -> str:
    """Text of a heading, with formulas as characters: "√d_k keeps …"."""
    return re.sub(r"\s+", " ", "".join(_plain(tag))).strip()


def restore(markup: str, form: Callable[[str, str], str]) -> str:
    """Put formulas back into the markup of a chapter, each as form(its HTML with MathML as on the site, its TeX)."""
    return LIFTED.sub(lambda found: form(unquote(found[2]), unquote(found[1])), markup)


def sections(chapter: Chapter) -> Iterator[tuple[str, str]]:
    """The sections of a chapter, as (id, title)."""
    for heading in chapter.body.find_all("h2"):
        yield str(heading["id"]), plain(heading)


def element(markup: str) -> Tag:
    """The one element that `markup` writes."""
    return _one(BeautifulSoup(markup, "html.parser"), "*").extract()


def _one(tag: Tag, selector: str) -> Tag:
    found = tag.select_one(selector)
    if found is None:
        raise ValueError(f"no {selector} in {str(tag)[:80]!r}; build the site anew")
    return found


def _plain(tag: Tag) -> Iterator[str]:
    for child in tag.children:
        if not isinstance(child, Tag):
            yield str(child)
        elif "katex" in child.get_attribute_list("class"):
            yield as_text(unquote(str(child["data-tex"])))
        elif "headerlink" not in child.get_attribute_list("class"):
            yield from _plain(child)


def _contents(lang: str) -> Iterator[tuple[str, str | None]]:
    """Every page in order, as ("chapters/1-concept", the caption of the part that it opens or None)."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    yield toc["root"], None
    for part in toc["parts"]:
        for place, chapter in enumerate(part["chapters"]):
            yield chapter["file"], None if place else pick(part["caption"], lang)


def _article(page: Path) -> Tag:
    markup = _lift(page.read_text(encoding="utf-8"))
    soup = BeautifulSoup(markup, "html.parser", parse_only=SoupStrainer("article"))
    return _one(soup, "article section").extract()


def _lift(markup: str) -> str:
    """Fold each formula into one empty element until `restore`: they are most of a page, and stay as they are."""
    parts, done = [], 0
    while (start := markup.find(KATEX, done)) >= 0:
        depth = 0
        for tag in SPAN.finditer(markup, start):
            depth += -1 if tag[1] else 1
            if depth == 0:
                break
        else:
            raise ValueError(f"a formula that does not end: {markup[start : start + 80]!r}")
        whole = markup[start : tag.end()]
        said = re.search(r"<annotation[^>]*>(.*?)</annotation>", whole, re.S)
        said_tex = quote(html.unescape(said[1])) if said else ""
        parts += [markup[done:start], f'<span class="katex" data-tex="{said_tex}" data-whole="{quote(whole)}"></span>']
        done = tag.end()
    return "".join([*parts, markup[done:]])


def _still(body: Tag, lang: str, here: str | None) -> None:
    """Live figures become their first frame, with a caption that says what moves on the web."""
    for root in body.select(".mha-explore"):
        choices = json.loads(_one(root, "script").get_text())["choices"]
        labels = [span.get_text() for span in root.select(".mha-slider > span")]
        comma, between, semicolon, stop = ("，", "、", "；", "。") if lang == "zh" else (", ", ", ", "; ", ".")
        starts = [output.get_text() for output in root.select("output")]
        shown = comma.join(f"{choice['name']} = {start}" for choice, start in zip(choices, starts, strict=True))
        brackets = "（{}）" if lang == "zh" else " ({})"
        moves = semicolon.join(
            label + brackets.format(between.join(map(str, choice["values"])))
            for label, choice in zip(labels, choices, strict=True)
        )
        words = (
            f"{pick('图中 | Shown:', lang)} {shown}{stop}",
            f"{pick('可以拨动： | you can move ', lang)}{moves}{stop}",
        )
        place = _web(root, lang, here)
        first, second = (html.escape(text) for text in words)
        gap = "" if lang == "zh" else " "
        figure = element(
            f'<figure class="mha-still"><figcaption>{first}{gap}{place}{gap}{second}</figcaption></figure>'
        )
        figure.insert(0, _one(root, "img").extract())
        root.replace_with(figure)
    for lab in body.select("figure.mha-lab"):
        caption = pick(LAB, lang).format(place=_web(lab, lang, here))
        _one(lab, "figcaption").replace_with(element(f"<figcaption>{caption}</figcaption>"))
        lab["class"] = "mha-still"


def _web(figure: Tag, lang: str, here: str | None) -> str:
    """The words "on the web", with a link to the section that holds the live figure where its address is known."""
    section, words = figure.find_parent("section"), pick("在网页上 | On the web", lang)
    if not (here and section):
        return words
    return f'<a href="{html.escape(here)}#{quote(str(section["id"]))}">{words}</a>'


def _unfold(body: Tag) -> None:
    """Boxes that fold on the site (<details>) stand open, with their title."""
    for fold in body.select("details"):
        title = _one(fold, "summary").extract()
        title.name, title["class"] = "p", "admonition-title"
        fold.name, fold["class"] = "div", " ".join(["admonition", *map(str, fold.get_attribute_list("class"))])
        inner = fold.find("div", recursive=False)
        if isinstance(inner, Tag) and not inner.attrs:
            inner.unwrap()
        fold.insert(0, title)


def _simplify(body: Tag, page: Path) -> None:
    for useless in body.select(DROPPED):
        useless.decompose()
    for frame in body.select(".pst-scrollable-table-container, code > span.pre, pre .mha-line"):
        frame.unwrap()
    for svg in body.select("svg"):
        svg.attrs = {SVG_NAMES.get(name, name): value for name, value in svg.attrs.items()}
    for image in body.select("img"):
        image.attrs = {name: value for name, value in image.attrs.items() if name in PICTURE}  # nothing loads late
        if not str(image["src"]).startswith("data:"):
            image["src"] = (page.parent / unquote(str(image["src"]))).resolve().as_uri()


def _join(body: Tag, name: str, known: set[str], here: str | None) -> None:
    """Make ids and links good for one book: #c-NAME--ID instead of NAME.html#ID."""
    for tag in filter(lambda tag: tag.get("id"), [body, *body.select("[id]")]):
        tag["id"] = anchor(name, str(tag["id"]))
    _one(body, "h1")["id"] = anchor(name)
    for number, heading in enumerate(body.find_all("h2")):
        heading["id"] = anchor(name, f"section-{number}")
    for link in body.select("a[href]"):
        target = urlsplit(str(link["href"]))
        page = Path(target.path).stem if target.path else name
        if target.scheme:
            continue
        if page in known:
            link["href"] = "#" + anchor(page, unquote(target.fragment))
        elif here:
            link["href"] = urljoin(here, str(link["href"]))
        else:
            link.unwrap()


def _take_solutions(chapter: Chapter, lang: str) -> list[Solved]:
    """Take every solution out of the chapter and leave a link to it. ValueError for one without an exercise."""
    found: list[Solved] = []
    for box in chapter.body.select("div.mha-fold"):
        if _one(box, ".admonition-title").get_text(strip=True) != pick(SOLUTION, lang):
            continue
        question, number = _exercise(box)
        key = f"exercise-{len(found) + 1}"
        question["id"] = anchor(chapter.name, key)
        there = anchor(SOLUTIONS, f"{chapter.name}-{key}")
        box.insert_before(element(
            f'<p class="mha-to-solution"><a href="#{there}">{pick(SOLUTION, lang)}<span class="mha-at" '
            f'data-page="{there}"></span></a></p>'
        ))  # fmt: skip
        section = box.find_parent("section")
        found.append(Solved(plain(_one(section or chapter.body, "h2")), number, key, box.extract()))
    return found


def _exercise(box: Tag) -> tuple[Tag, str]:
    """The paragraph that begins the exercise of a solution, and its number: "**2.** …"."""
    for before in box.find_previous_siblings("p"):
        bold = before.find("strong")
        if bold and (number := NUMBER.match(bold.get_text(strip=True))):
            return before, number.group()
    raise ValueError(f"a solution without a numbered exercise before it: {box.get_text()[:60]!r}")


def _solutions(solved: list[tuple[Chapter, list[Solved]]], lang: str) -> Chapter:
    """The chapter of solutions, each linked with its exercise."""
    title = pick("答案 | Solutions", lang)
    body = element(f'<section id="{anchor(SOLUTIONS, "top")}"><h1 id="{anchor(SOLUTIONS)}">{title}</h1></section>')
    for chapter, found in solved:
        own = element(
            f'<section><h2 id="{anchor(SOLUTIONS, chapter.name)}">{html.escape(chapter.title)}</h2></section>'
        )
        headings = list(dict.fromkeys(one.section for one in found))
        for heading in headings:
            if len(headings) > 1:
                own.append(element(f"<h3>{html.escape(heading)}</h3>"))
            for one in (one for one in found if one.section == heading):
                own.append(_solution(chapter, one))
        body.append(own)
    return Chapter(SOLUTIONS, title, None, body)


def _solution(chapter: Chapter, one: Solved) -> Tag:
    question = anchor(chapter.name, one.key)
    entry = element(f'<div class="mha-solution" id="{anchor(SOLUTIONS, f"{chapter.name}-{one.key}")}"></div>')
    _one(one.box, ".admonition-title").decompose()
    for child in list(one.box.children):
        entry.append(child.extract())
    number = element(f'<a class="mha-back" href="#{question}"><strong>{one.number}.</strong></a>')
    first = entry.find(True)
    if not (isinstance(first, Tag) and first.name == "p"):
        first = element("<p></p>")
        entry.insert(0, first)
    first.insert(0, number)
    first.insert(1, " ")
    last = entry.find_all(["p", "div", "ul", "ol"], recursive=False)[-1]
    (last if last.name == "p" else entry).append(
        element(f'<a class="mha-back" href="#{question}"><span class="mha-at" data-page="{question}"></span></a>')
    )
    return entry
