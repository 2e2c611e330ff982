"""The language in which figures and live figures speak: `zh` or `en`."""

import os

LANGUAGES = ("zh", "en")
_chosen: str | None = None


def set_language(lang: str) -> None:
    """Draw from now on in `lang`. ValueError unless it is "zh" or "en".

    >>> set_language(language())
    """
    global _chosen
    if lang not in LANGUAGES:
        raise ValueError(f'lang must be "zh" or "en", got {lang!r}')
    _chosen = lang


def language() -> str:
    """The reader's language: what `set_language` chose, else MHA_LANG, else the system's, else English."""
    asked = _chosen or os.environ.get("MHA_LANG") or os.environ.get("LC_ALL") or os.environ.get("LANG") or ""
    return "zh" if asked.lower().startswith("zh") else "en"


def say(zh: str, en: str) -> str:
    """The one of two wordings that is in the reader's language.

    >>> say("头", "head") in ("头", "head")
    True
    """
    return zh if language() == "zh" else en
