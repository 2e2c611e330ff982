"""The Sphinx extension that makes one language's site from the bilingual notebooks."""

import hashlib
import os
import re
import shutil
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.locale import get_translator

from book import anchors, api, formulas, launch, versions
from book.lab import HOLDS, SCRIPT, STYLE, write
from book.languages import LANGUAGES, SPHINX, pick, select
from book.paper import offer
from book.strip import strip
from book.words import Fallback

FRAME = re.compile(r"frames:([0-9a-f]{16}\.webp)")  # as the kernel writes it
FRAME_ON_PAGE = re.compile(r"_frames/([0-9a-f]{16}\.webp)")
ASSETS = Path(__file__).parent / "assets"


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("book_languages", [], "html")  # the languages that stand side by side, for the switcher
    app.connect("config-inited", _configure, priority=100)
    app.connect("builder-inited", _prepare_kernels)
    app.connect("env-before-read-docs", _translate_captions)
    app.connect("source-read", _select_language)
    app.connect("doctree-read", anchors.settle, priority=100)  # before Sphinx notes the contents
    app.connect("doctree-resolved", _finish_text)
    app.connect("html-page-context", _finish_page)
    app.connect("build-finished", _copy_frames)
    app.setup_extension("book.search")
    app.setup_extension("book.found")
    app.add_html_math_renderer("katex", (formulas.visit_inline, None), (formulas.visit_block, None))
    return {"version": "1", "env_version": 2, "parallel_read_safe": True, "parallel_write_safe": False}


def language(config: Config) -> str:
    """`zh` or `en`."""
    return next(lang for lang in LANGUAGES if SPHINX[lang] == config.language)


def code_digest(root: Path) -> str:
    """Changes when the code that chapters run changes, so that no stored run outlives it."""
    digest = hashlib.sha256()
    for path in sorted((root / "mha").rglob("*.*")):
        if path.suffix in (".py", ".otf", ".json"):
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _configure(app: Sphinx, config: Config) -> None:
    lang = language(config)
    root = Path(app.srcdir)
    config.html_math_renderer = "katex"
    config.math_numfig = False  # equations count from 1 on each page
    config.nb_execution_cache_path = str(root / "_build" / "runs" / f"{lang}-{code_digest(root)}")
    config.nb_ipywidgets_js = {}  # the page moves its own figures; nothing is fetched from elsewhere
    for name in ("project", "html_title", "author"):
        setattr(config, name, pick(getattr(config, name), lang))
    config.togglebutton_selector = ".toggle"  # what folds is a <details>, see _fold
    theme = config.html_theme_options
    theme["search_bar_text"] = pick("搜索全书 | Search this book", lang)
    config.html_static_path += [str(ASSETS), str(write(Path(app.doctreedir) / "lab"))]
    app.add_css_file("katex/katex.min.css")
    app.add_css_file("book.css")
    app.add_js_file("book.js", loading_method="defer")


def _frames(app: Sphinx) -> Path:
    return Path(app.config.nb_execution_cache_path) / "frames"


def _prepare_kernels(app: Sphinx) -> None:
    if language(app.config) == "zh":
        get_translator().add_fallback(Fallback())
    os.environ["MHA_LANG"] = language(app.config)
    os.environ["MHA_FRAMES"] = str(_frames(app))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(app.srcdir), os.environ.get("PYTHONPATH"))))


def _translate_captions(app: Sphinx, env: Any, _docnames: list[str]) -> None:
    for document in env.external_site_map.values():
        for tree in document.subtrees:
            if tree.caption:
                tree.caption = pick(tree.caption, language(app.config))


def _select_language(app: Sphinx, docname: str, source: list[str]) -> None:
    if str(app.env.doc2path(docname)).endswith(".ipynb"):
        notebook = nbformat.reads(source[0], as_version=4)
        app.env.temp_data["book_anchors"] = anchors.anchors(notebook)
        if any(api.names(cell.source) for cell in notebook.cells):
            for path in (*(Path(app.srcdir) / "mha").rglob("*.py"), api.ZH):
                app.env.note_dependency(str(path))  # the page says what they say
        source[0] = nbformat.writes(select(notebook, language(app.config)))


def _finish_text(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    formulas.keep_punctuation(doctree)
    title = next(iter(doctree.findall(nodes.title)), None)
    if app.builder.name != "html":
        return
    _fold(doctree)
    if title is None:
        return
    page = strip(
        docname,
        language(app.config),
        lambda target: app.builder.get_relative_uri(docname, target),
        set(app.env.found_docs),
    )
    if any(node.get("nb_element") == "cell_code" for node in doctree.findall(nodes.container)):
        page += launch.row(docname, language(app.config))
    title.parent.insert(title.parent.index(title) + 1, nodes.raw("", page, format="html"))


def _fold(doctree: nodes.document) -> None:
    """Boxes marked `dropdown` become <details>: they fold without a script, and a search in the page opens them."""
    for box in list(doctree.findall(lambda node: isinstance(node, nodes.admonition) and "dropdown" in node["classes"])):
        title = next(iter(box.findall(nodes.title)), None)
        words = title.astext() if title else ""
        classes = " ".join(["mha-fold", *box["classes"]])
        opening = nodes.raw("", f'<details class="{classes}"><summary>{escape(words)}</summary><div>', format="html")
        inside = [child for child in box.children if child is not title]
        box.parent.replace(box, [opening, *inside, nodes.raw("", "</div></details>", format="html")])


def _finish_page(app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    if "body" in context:
        way = context["pathto"]("_frames", 1)
        context["body"] = FRAME.sub(rf"{way}/\1", context["body"])
        if HOLDS in context["body"]:  # called here, Sphinx adds them to this page alone
            app.add_css_file(STYLE)
            app.add_js_file(SCRIPT, loading_method="defer")
    lang = language(app.config)
    others = [other for other in app.config.book_languages if other != lang]
    suffix = app.builder.get_target_uri(pagename)
    up = "../" * (pagename.count("/") + 1)
    context["theme_extra_footer"] = _footer(lang, f"{up}versions.html" if others else None)
    for other in others:
        context["header_buttons"].append(
            {
                "type": "link",
                "url": f"{up}{other}/{suffix}",
                "tooltip": {"zh": "用中文读这一页", "en": "Read this page in English"}[other],
                "text": {"zh": "中文", "en": "English"}[other],
                "label": f"switch-to-{other}",
            }
        )


def _footer(lang: str, list_of_versions: str | None) -> str:
    """The licences, and which version of the book this is."""
    licences = pick("文字：CC BY 4.0；代码：MIT | Text: CC BY 4.0; code: MIT", lang)
    number, day = versions.version(), versions.spoken(versions.date(), lang)
    said = pick(f"版本 {number}，{day} | Version {number}, {day}", lang)
    if list_of_versions:
        said = f'<a href="{list_of_versions}">{said}</a>'
    return f"{offer.PLACE}<p>{licences}</p><p>{said}</p>"


def _copy_frames(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    target = Path(app.outdir) / "_frames"
    pages = (page.read_text(encoding="utf-8") for page in Path(app.outdir).rglob("*.html"))
    wanted = {name for page in pages for name in FRAME_ON_PAGE.findall(page)}
    target.mkdir(exist_ok=True)
    for old in {path.name for path in target.iterdir()} - wanted:
        (target / old).unlink()
    for name in wanted:
        if not (target / name).exists():
            shutil.copyfile(_frames(app) / name, target / name)
