"""How the bundled font was made: python -m book.font NotoSansCJK-Regular.ttc

A subset of Noto Sans CJK SC (SIL Open Font License 1.1, see mha/fonts/OFL.txt), renamed: GB 2312's 3,755 most
common characters, punctuation, Latin, Greek and the signs that figures use. Needs fonttools only.
"""

import sys
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

FAMILY = "MHA Sans SC"
SIGNS = "−×÷√∞≈≠≤≥±·…—–‘’“”←→↑↓↔⇒∑∏∈∥✓°′″"
MORE = "熵"  # rarer characters that figures use


def characters() -> set[int]:
    """Code points to keep."""
    level_1 = (bytes([row, cell]) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF))
    punctuation = (bytes([row, cell]) for row in (0xA1, 0xA3, 0xA6) for cell in range(0xA1, 0xFF))
    text = "".join(pair.decode("gb2312", errors="ignore") for pair in (*level_1, *punctuation))
    return {ord(c) for c in text + SIGNS + MORE} | set(range(0x20, 0x7F)) | set(range(0xA0, 0x100))


def main(source: str) -> None:
    font = TTFont(source, fontNumber=2)  # the collection's simplified Chinese face
    options = Options(name_IDs=[0, 13, 14], layout_features=[], hinting=False, desubroutinize=True)
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=characters())
    subsetter.subset(font)
    for name_id, value in ((1, FAMILY), (2, "Regular"), (3, FAMILY), (4, FAMILY), (6, "MHASansSC-Regular")):
        font["name"].setName(value, name_id, 3, 1, 0x409)
    font["CFF "].cff.fontNames = ["MHASansSC-Regular"]
    font.save(Path(__file__).parent.parent / "mha" / "fonts" / "MHASansSC-Regular.otf")


if __name__ == "__main__":
    main(sys.argv[1])
