"""The pages outside the languages, and what a host and its visitors look for at a site's root.

The front door, the way from /zh/ and /en/ to the cover, 404.html, sitemap.xml, robots.txt, favicon.ico.
"""

import re
import shutil
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from book import cards, versions
from book.address import site_url
from book.found import address, alternates, link, meta
from book.languages import LANGUAGES, pick

ROOT = Path(__file__).parent.parent
FRONT = ROOT / "book" / "front"
ABOUT = {
    "zh": "一本能运行的书：页面上的每个数、每张图都由页面上的代码算出来。",
    "en": "A book you can run: every number and figure comes from code on the page.",
}


def build_door(site: Path) -> None:
    """Write them all into the built site."""
    cover = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["root"]
    place = site_url()
    for lang in LANGUAGES:
        (site / lang / "index.html").write_text(_way_in(lang, cover, place), encoding="utf-8")
    (site / "index.html").write_text(_filled("index.html", cover, place), encoding="utf-8")
    (site / "404.html").write_text(_filled("404.html", cover, place), encoding="utf-8")
    shutil.copyfile(FRONT / "front.js", site / "front.js")
    (site / "favicon.ico").write_bytes(cards.icon(32, "ICO"))
    (site / "robots.txt").write_text(robots(place), encoding="utf-8")
    (site / "sitemap.xml").unlink(missing_ok=True)
    if place:
        names = sorted(f"chapters/{page.stem}" for page in (site / "zh" / "chapters").glob("*.html"))
        (site / "sitemap.xml").write_text(sitemap(place, names, cover), encoding="utf-8")


def robots(place: str | None) -> str:
    """Everybody may read everything; where the address is known, here is the list."""
    return "User-agent: *\nAllow: /\n" + (f"Sitemap: {place}sitemap.xml\n" if place else "")


def sitemap(place: str, names: list[str], cover: str) -> str:
    """Every page in every language, each with its other languages."""
    rows = []
    for name in names:
        others = "".join(
            f'<xhtml:link rel="alternate" hreflang="{code}" href="{escape(there)}"/>'
            for code, there in alternates(place, name, name == cover)
        )
        rows += [
            f"<url><loc>{escape(address(place, lang, name))}</loc><lastmod>{versions.date()}</lastmod>{others}</url>"
            for lang in LANGUAGES
        ]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
        'xmlns:xhtml="http://www.w3.org/1999/xhtml">\n' + "\n".join(rows) + "\n</urlset>\n"
    )


def _titles() -> dict[str, str]:
    title = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["title"]
    return {lang: pick(title, lang) for lang in LANGUAGES}


def _filled(name: str, cover: str, place: str | None) -> str:
    """A page of book/front with its words, styles and addresses. Its script stands in it only where it must."""
    values = {f"title_{lang}": title for lang, title in _titles().items()}
    values |= {
        "cover": cover,
        "base": (urlsplit(place).path if place else "") or "/",
        "style": (FRONT / "front.css").read_text(encoding="utf-8"),
        "script": (FRONT / "404.js").read_text(encoding="utf-8"),
        "head": "\n".join(_head(cover, place)),
    }
    page = (FRONT / name).read_text(encoding="utf-8")
    return re.sub(r"\{(\w+)\}", lambda found: values[found[1]], page)


def _head(cover: str, place: str | None) -> list[str]:
    titles = _titles()
    title, about = " · ".join(titles.values()), " ".join(ABOUT.values())
    lines = [
        meta("name", "description", about),
        meta("property", "og:title", title),
        meta("property", "og:description", about),
        meta("property", "og:type", "book"),
    ]
    if place:
        card = f"{place}en/cards/{cover.rpartition('/')[2]}.png"
        lines += [link("canonical", place), meta("property", "og:url", place), meta("property", "og:image", card)]
        lines += [meta("name", "twitter:card", "summary_large_image")]
        lines += [link("alternate", there, code) for code, there in alternates(place, cover, cover=True)]
    return lines


def _way_in(lang: str, cover: str, place: str | None) -> str:
    title, way = _titles()[lang], f"{cover}.html"
    canonical = link("canonical", address(place, lang, cover)) if place else ""
    return (
        f'<!DOCTYPE html><html lang="{lang}"><meta charset="utf-8"><title>{title}</title>{canonical}'
        '<link rel="icon" href="_static/favicon.svg">'
        f'<meta http-equiv="refresh" content="0; url={way}"><a href="{way}">{title}</a></html>\n'
    )
