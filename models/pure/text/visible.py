"""Characters that a screen obeys or hides, written out for people."""

import re
import unicodedata

_BLANK = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}
_BLANK |= {*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
"""Characters that Unicode calls printable, and that show nothing: fillers, joiners, variation selectors."""

_LINE_ENDS = re.compile("([\n\t])")


def visible(text: str) -> str:
    """Return the text in one line, with each character that a screen would obey or hide written as `<U+202E>`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if is_plain(c) else f"<U+{ord(c):04X}>" for c in text)


def visible_lines(text: str) -> str:
    """Return the text as `visible` does, but with its line ends and tabs."""
    return "".join(part if part in "\n\t" else visible(part) for part in _LINE_ENDS.split(text))


def is_plain(character: str) -> bool:
    """False for controls, formats such as right-to-left marks, surrogates, private and unassigned characters, odd spaces, line
    separators and fillers."""
    category = unicodedata.category(character)
    return character == " " or not (category[0] == "C" or category in {"Zl", "Zp", "Zs"} or ord(character) in _BLANK)
