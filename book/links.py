"""Ask every address that the book names whether it still answers: python -m book.links (needs the network)."""

import sys

from book.languages import LANGUAGES, SPHINX
from book.site import ROOT

SETTINGS = {
    "latex_individualpages": False,  # build_sphinx asks for it
    "nb_execution_mode": "off",
    "linkcheck_anchors": False,  # many pages make theirs by script
    "linkcheck_timeout": 30,
    "linkcheck_retries": 3,
    "linkcheck_report_timeouts_as_broken": False,
}


def check(lang: str) -> int:
    """The number to exit with: 0 when every address in this language's pages answers. Says which do not."""
    from jupyter_book.sphinx import build_sphinx

    out = ROOT / "_build" / "links" / lang
    result = build_sphinx(
        str(ROOT), str(out), noconfig=True, path_config=str(ROOT / "_config.yml"), builder="linkcheck", quiet=True,
        confoverrides={"language": SPHINX[lang], **SETTINGS}, doctreedir=str(out / ".doctrees"),
    )  # fmt: skip
    return result if isinstance(result, int) else 1


if __name__ == "__main__":
    sys.exit(max([check(lang) for lang in LANGUAGES]))
