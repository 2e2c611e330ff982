"""The last step of a build: Sphinx's pages become the site, with nothing on them that they do not use.

The theme brings an icon font, 400 KB of stylesheets and a dozen scripts to every page. A finished page has one
stylesheet (book/styles.py), the book's own scripts, and a Content-Security-Policy that forbids everything else.
"""

import base64
import hashlib
import itertools
import re
import shutil
from collections.abc import Iterable
from html import unescape
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from book.languages import pick
from book.styles import bundle, formula_letters, names, script_names

ASSETS = Path(__file__).parent / "assets"
OWN = ("icons.css", "page.js")  # what the theme's icons and scripts did, without their weight
ARTICLE = re.compile(r"<article class=\"bd-article\">.*</article>", re.S)
# Q, W_K, … as code in prose: they wear the colours of figures and formulas
CHIP = re.compile(r'<code class="([^"]*literal[^"]*)">(<span class="pre">(?:W_)?)([QKVO])(?=</span></code>)')
# What the theme puts on a page and this book has no use for
GONE = (
    "noscript", ".pst-async-banner-revealer", "#pst-header", "#jb-print-docs-body", "#ethical-ad-placement",
    "#pst-scroll-pixel-helper", "#searchbox", ".btn-fullscreen-button", "#pst-back-to-top", "footer.bd-footer",
    "link[rel=preload]", "meta[name^=docsearch]", "link[rel=next]",  # Firefox would fetch the next page unasked
)  # fmt: skip
THEIR_SCRIPTS = re.compile(
    r"_static/(?:scripts/|clipboard|copybutton|togglebutton|translations|design-tabs|sphinx_highlight|"
    r"documentation_options|doctools|searchtools|language_data)"
)
THEIR_WORDS = re.compile(
    r"DOCUMENTATION_OPTIONS\.|toggle(?:Hint|OpenOnPrint)|togglebuttonSelector|localStorage|searchInput"
)
UNUSED = re.compile(
    r"_static/(?:scripts|styles|vendor|locales|katex|images|webpack|sbt-webpack)|_static/[^/]*\.(?:css|map)$|"
    r"_static/(?:icons|page|clipboard|copy|toggle|translations|design-tabs|sphinx_highlight|documentation_options|"
    r"doctools|searchtools|language_data|check-solid|file|minus|plus)[^/]*$|_sources/|\.map$|\.buildinfo|objects\.inv"
)
# Before the first paint: the colours that the reader chose, and the letters of formulas, which are in the stylesheet
# but take a browser some milliseconds to read. Without the short wait lines would break anew when they are there.
EARLY = (
    '(()=>{const d=document.documentElement;let m="auto";try{m=localStorage.getItem("mha-mode")||m}catch{}'
    'd.dataset.mode=m;d.dataset.theme=m!=="auto"?m:matchMedia("(prefers-color-scheme: dark)").matches?"dark":"light";'
    "const go=()=>delete d.dataset.wait;d.dataset.wait=1;setTimeout(go,300);"
    "Promise.all([...document.fonts].map(f=>f.load())).then(go,go)})()"
)
# Styles: KaTeX's and the theme's style attributes hold lengths; no <style> from elsewhere can be added
POLICY = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self'{styles}; style-src-attr 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
    "base-uri 'none'; form-action 'self'; object-src 'none'"
)
# Netlify, Cloudflare Pages and others read this file; book/README.md says what to do elsewhere
HEADERS = """/*
  Content-Security-Policy: {policy}; frame-ancestors 'self'
  X-Content-Type-Options: nosniff
  Referrer-Policy: strict-origin-when-cross-origin
  Permissions-Policy: camera=(), microphone=(), geolocation=()
/zh/_static/*
  Cache-Control: public, max-age=31536000, immutable
/en/_static/*
  Cache-Control: public, max-age=31536000, immutable
"""
ENTRY = ('role="doc-biblioentry"', 'role="listitem"')  # docutils' role is no longer one; the list wants items
LABELS = {
    "Main": "主目录 | Main", "Page": "本页目录 | On this page",
    "Toggle primary sidebar": "打开或收起目录 | Show or hide the contents",
    "Toggle secondary sidebar": "打开或收起本页目录 | Show or hide this page's contents",
}  # fmt: skip


def finish(raw: Path, out: Path, lang: str) -> None:
    """Make `out` the finished form of Sphinx's output in `raw`; whatever else was in `out` is removed."""
    pages = {path.relative_to(raw): path.read_text(encoding="utf-8") for path in sorted(raw.rglob("*.html"))}
    pages = {path: text for path, text in pages.items() if "_static" not in path.parts}
    sheets, scripts = _files(pages.values(), raw)
    made = {name: _page(text, lang).replace(*ENTRY) for name, text in pages.items()}
    script_texts = [path.read_text(encoding="utf-8") for path in scripts]
    used = set().union(*map(names, made.values()), *map(script_names, script_texts))
    letters: dict[str, set[str]] = {}
    for found in map(formula_letters, made.values()):
        for font, shown in found.items():
            letters.setdefault(font, set()).update(shown)
    css = bundle(sheets, used, letters, [*script_texts, *made.values()])
    script = (ASSETS / OWN[1]).read_text(encoding="utf-8")
    style, first = _stored(css, "book.css"), _stored(script, OWN[1])
    files = {f"_static/{style}": css.encode(), f"_static/{first}": script.encode()}
    for name, text in made.items():
        up = "../" * (len(name.parts) - 1)
        head = (
            f'<link rel="stylesheet" href="{up}_static/{style}">\n<script>{EARLY}</script>\n'
            f'<script defer src="{up}_static/{first}"></script>\n'
        )
        files[name.as_posix()] = protect(text.replace("</head>", f"{head}</head>", 1)).encode()
    _write(files, raw, out)


def secure(site: Path) -> None:
    """Give every page of the site its policy, and the site a file of headers for hosts that read one."""
    scripts: dict[str, None] = {}
    styles: dict[str, None] = {}
    for path in sorted(site.rglob("*.html")):
        page = path.read_text(encoding="utf-8")
        guarded = protect(page)
        if guarded != page:
            path.write_text(guarded, encoding="utf-8")
        scripts.update(dict.fromkeys(map(_hash, inline_scripts(page))))
        styles.update(dict.fromkeys(map(_hash, inline_styles(page))))
    (site / "_headers").write_text(HEADERS.format(policy=_policy(scripts, styles)), encoding="utf-8")


def protect(page: str) -> str:
    """The page with its Content-Security-Policy, which lets run what is written in the page now and nothing else."""
    policy = _policy(map(_hash, inline_scripts(page)), map(_hash, inline_styles(page)))
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    page = re.sub(r'\n?<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    guarded, placed = re.subn(r'<meta charset="utf-8" ?/?>', rf"\g<0>\n{meta}", page, count=1)
    return guarded if placed else meta + page


def _policy(scripts: Iterable[str], styles: Iterable[str]) -> str:
    return POLICY.format(scripts="".join(f" {s}" for s in scripts), styles="".join(f" {s}" for s in styles))


def inline_styles(page: str) -> list[str]:
    """The texts of the <style> elements in the page."""
    return re.findall(r"<style[^>]*>(.*?)</style>", page, re.S)


def inline_scripts(page: str) -> list[str]:
    """The texts of scripts in the page that a browser would run."""
    return [
        text
        for attributes, text in re.findall(r"<script\b([^>]*)>(.*?)</script>", page, re.S)
        if "src=" not in attributes
        and not re.search(r"type=[\"']?(?:application/(?:ld\+)?json|text/plain)", attributes)
    ]


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _files(pages: Iterable[str], raw: Path) -> tuple[list[Path], list[Path]]:
    """The stylesheets that the pages ask for, the book's own last, and the scripts that stay."""
    sheets: dict[Path, None] = {}
    scripts: dict[Path, None] = {}
    for page in pages:
        for href in re.findall(r'<link[^>]*href="([^"]+\.css)[^"]*"[^>]*>', page):
            sheets[raw / "_static" / href.split("_static/")[1]] = None
        for src in re.findall(r'<script[^>]*src="([^"]+)"', page):
            if "_static/" in src and not THEIR_SCRIPTS.search(src):
                scripts[raw / "_static" / src.split("_static/")[1].split("?")[0]] = None
    order = sorted([*sheets, ASSETS / OWN[0]], key=lambda path: path.name == "book.css")
    return order, [ASSETS / OWN[1], *scripts]


def _page(text: str, lang: str) -> str:
    """The page without the theme's ballast. The article is not parsed: its many formulas stay as they are."""
    found = ARTICLE.search(text)
    article = _article(found[0]) if found else ""
    soup = BeautifulSoup(ARTICLE.sub("<article></article>", text) if found else text, "html.parser")
    for tag in soup.select(",".join(GONE)):
        tag.decompose()
    _head(soup)
    for column in soup.select("#pst-primary-sidebar"):
        column["role"], column["aria-label"] = "complementary", pick("目录 | Contents", lang)
    for button in soup.select("button[title]"):
        button["aria-label"] = button["title"]
    for tag in soup.select("[title], [aria-label]"):
        for name in ("title", "aria-label"):
            if (word := tag.get(name)) in LABELS:
                tag[name] = pick(LABELS[str(word)], lang)
        for name in ("data-bs-toggle", "data-bs-placement", "data-bs-title"):
            del tag[name]
    for icon in soup.select("i[class*='fa-'], span[class*='fa-']"):
        _own_icon(icon)
    for author in soup.select(".component-author"):  # the theme joins two texts that were not written to be joined
        author.string = author.get_text(strip=True).replace("： ", "：").replace("By The ", "By the ")
    page = re.sub(r"\n\s*\n+", "\n", re.sub(r"[ \t]+\n", "\n", str(soup)))
    return page.replace("<article></article>", article, 1)


def _head(soup: BeautifulSoup) -> None:
    for extra in soup.select("meta[name=viewport]")[1:]:
        extra.decompose()
    if soup.title and soup.head and not soup.select_one("meta[name=description]"):  # the search page
        soup.head.append(
            soup.new_tag("meta", attrs={"name": "description", "content": soup.title.get_text(strip=True)})
        )
    for link in soup.select("link[rel=stylesheet]"):
        link.decompose()
    for script in soup.select("script"):
        source = str(script.get("src", ""))
        if THEIR_SCRIPTS.search(source) or (not source and THEIR_WORDS.search(script.get_text())):
            script.decompose()
        elif source:
            script["defer"] = ""


def _own_icon(icon: Tag) -> None:
    classes = [str(name) for name in icon.get_attribute_list("class")]
    shapes = [name[3:] for name in classes if re.fullmatch(r"fa-(?!solid|lg|regular)[\w-]+", name)]
    rest = [name for name in classes if not re.fullmatch("fas?|fa-.*", name)]
    icon["class"] = " ".join([*rest, "mha-icon", *(f"mha-{shape}" for shape in shapes)])
    icon["aria-hidden"] = "true"


def _article(article: str) -> str:
    """Pictures: the first one at once, the others when the reader comes near. Code: line by line, to wrap."""
    images = itertools.count()

    def image(match: re.Match[str]) -> str:
        how = 'loading="lazy"' if next(images) else 'fetchpriority="high"'
        return f'<img {how} decoding="async" {match[1]}'

    article = re.sub(r"<img (?![^>]*loading=)([^>]*>)", image, article)
    article = re.sub(r'(<span class="pre">)([^<]{16,})(?=</span>)', _breakable, article)
    # the corner of a table that heads nothing is no header
    article = re.sub(r'<th class="head">\s*(?:<p>\s*</p>)?\s*</th>', "<td></td>", article)
    article = CHIP.sub(r'<code class="\1 mha-chip-\3">\2\3', article)
    return re.sub(
        r'(<div class="[^"]*highlight-([\w-]+)[^"]*"><div class="highlight"><pre)>(.*?)</pre>',
        _code,
        article,
        flags=re.S,
    )


def _breakable(match: re.Match[str]) -> str:
    """Long names break after a separator or between CamelCase's words, not before the comma that follows them."""
    return match[1] + re.sub(r"(?<=\w)([/_.#=(]|-)(?=\w)|(?<=[a-z])(?=[A-Z])", r"\1<wbr>", match[2])


def _code(match: re.Match[str]) -> str:
    start, language, text = match.groups()
    lines = text.removeprefix("<span></span>").removesuffix("\n").split("\n")
    plain = [unescape(re.sub(r"<[^>]+>", "", line)) for line in lines]
    if language == "myst-ansi":
        widest = max(map(len, plain))
        columns = re.search(r"\S  +\S| \| ", "\n".join(plain))  # they stay columns; a sentence may go on below
        kind = "" if columns else ' class="mha-sentence"'
        reach = ' tabindex="0"' if columns and widest > 50 else ""  # it scrolls on a phone: the keyboard must get there
        return f'{start}{kind}{reach} style="--n:{widest}">{text}</pre>'

    def style(indent: int) -> str:
        return f' style="--n:{indent}"' if indent else ""

    indents = [len(line) - len(line.lstrip()) for line in plain]
    spans = (
        f'<span class="mha-line"{style(indent)}>{line}\n</span>' for indent, line in zip(indents, lines, strict=True)
    )
    return f"{start}>{''.join(spans)}</pre>"


def _stored(text: str, name: str) -> str:
    stem, _, kind = name.rpartition(".")
    return f"{stem}.{hashlib.sha256(text.encode()).hexdigest()[:12]}.{kind}"


def _write(files: dict[str, bytes], raw: Path, out: Path) -> None:
    for path in raw.rglob("*"):
        name = path.relative_to(raw).as_posix()
        if path.is_file() and name not in files and not UNUSED.search(name) and path.suffix != ".html":
            target = out / name
            files.setdefault(name, b"")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not (target.exists() and target.stat().st_mtime_ns == path.stat().st_mtime_ns):
                shutil.copy2(path, target)
    for name, content in files.items():
        target = out / name
        if content and not (target.exists() and target.read_bytes() == content):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for path in sorted(out.rglob("*"), reverse=True):
        if path.is_file() and path.relative_to(out).as_posix() not in files:
            path.unlink()
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
