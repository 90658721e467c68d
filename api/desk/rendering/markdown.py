"""What an agent writes, as markup: a safe subset of Markdown.

The text cannot bring markup of its own: HTML is text, images are links, and a link leads only to http, https or mail. Where a link
leads stands beside it, because a text may claim anything. Headings are paragraphs, so that a message does not change the outline of
the page.
"""

import time
from collections.abc import MutableMapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from models.pure.text.visible import visible, visible_lines

LONGEST = 20_000
"""Characters of a text that is parsed. A longer text is shown as it is."""
_SCHEMES = {"http", "https", "mailto"}
_RULES = ("table", "strikethrough")
"""Rules beside those of CommonMark."""
_HIDING = ("entity", "reference")
"""Rules of CommonMark that let a text hide characters or lines."""


class Pen:
    """Writes the texts of one page. When it has used its CPU time, the rest stays plain: the agent chooses the texts."""

    def __init__(self, seconds: float = 0.5) -> None:
        self._seconds = seconds

    def __call__(self, text: str) -> Markup:
        """Return the text as markup. Characters that a screen would obey or hide are written out."""
        visible_text = visible_lines(text)
        if len(text) > LONGEST or self._seconds <= 0:
            return Markup('<p class="plain">{}</p>').format(visible_text)
        before = time.thread_time()
        markup = Markup(_parser().render(visible_text))  # noqa: S704 - the parser escapes everything that is not its own
        self._seconds -= time.thread_time() - before
        return markup


@cache
def _parser() -> MarkdownIt:
    return _Parser("commonmark", {"html": False, "linkify": False}, renderer_cls=_Renderer).enable(_RULES).disable(_HIDING)


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - the library's name
        """Return True if a link may lead there."""
        try:
            parts = urlsplit(url)
        except ValueError:
            return False
        # A browser reads `https:a.example` as a place on our own host.
        return parts.scheme in _SCHEMES and bool(parts.hostname or parts.scheme == "mailto")


def _place(address: str) -> str:
    """Return where a link leads: its host, or the address of a mail."""
    parts = urlsplit(address)
    return visible(parts.hostname or parts.path)[:100]


class _Renderer(RendererHTML):
    """Prints links with their places, images as links, and headings as paragraphs."""

    def heading_open(self, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
        return f'<p class="heading level-{tokens[at].tag[1:]}">'

    def heading_close(self, _tokens: Sequence[Token], _at: int, _options: Any, _env: Any) -> str:
        return "</p>\n"

    def link_open(self, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
        return Markup('<a href="{}" rel="noopener noreferrer nofollow">').format(str(tokens[at].attrGet("href") or ""))

    def link_close(self, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
        opening = next(token for token in reversed(tokens[:at]) if token.type == "link_open")
        return Markup('</a> <span class="place">({})</span>').format(_place(str(opening.attrGet("href") or "")))

    def image(self, tokens: Sequence[Token], at: int, _options: Any, _env: MutableMapping[str, Any]) -> str:
        address = str(tokens[at].attrGet("src") or "")
        words = tokens[at].content or "an image"
        link = '<a href="{0}" rel="noopener noreferrer nofollow">{1}</a> <span class="place">({2})</span>'
        return Markup(link).format(address, words, _place(address))  # noqa: S704 - a constant

    def table_open(self, _tokens: Sequence[Token], _at: int, _options: Any, _env: Any) -> str:
        return '<div class="wide"><table>\n'

    def table_close(self, _tokens: Sequence[Token], _at: int, _options: Any, _env: Any) -> str:
        return "</table></div>\n"
