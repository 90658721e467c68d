"""The filters and functions of templates: times, hidden characters, and the addresses of our files.

Each value that a template prints goes through `visible_lines`, so that no page hides a character.
"""

from datetime import datetime
from functools import cache
from typing import Any

from flask import Flask
from jinja2 import Undefined
from markupsafe import Markup

from api.desk.rendering import fields
from api.desk.rendering.refusals import sentence
from api.desk.shell import files, viewing
from models.pure.policy.covering import KNOWN_ONLY
from models.pure.state_words import StateWord
from models.pure.text import relative_time
from models.pure.text.visible import visible_lines
from models.session.approval.row import Approval

_SOON_SECONDS = 3600
"""A deadline that is nearer than this is marked."""


def install(app: Flask) -> None:
    """Give `app`'s templates the filters and functions."""
    language = app.jinja_env
    language.finalize = _visible
    language.trim_blocks = language.lstrip_blocks = True
    language.filters |= {"ago": _ago, "left": _left, "deadline": _deadline, "is_soon": _is_soon, "stamp": _stamp, "clock": _clock}
    language.filters |= {"starting": starting, "raw": _raw, "ticks": ticks, "covered": covered, "sentence": sentence}
    language.filters |= {"pretty": fields.pretty, "initials": viewing.initials, "browser_name": viewing.browser_name}
    language.globals |= {"static": files.address, "glyph": glyph, "chip": chip, "mark_of": mark_of}
    language.globals |= {"csrf_field": viewing.csrf_field, "counted": relative_time.number_with_noun, "is_halted": viewing.halted}


def _visible(value: Any) -> Any:
    """Return the value as a template prints it."""
    if value is None:
        return ""
    return visible_lines(value) if isinstance(value, str) and not isinstance(value, Markup | Undefined) else value


def _raw(text: str) -> Markup:
    """Return a text for a field that people edit: escaped for HTML, and with its hidden characters."""
    return Markup.escape(text)


def starting(words: str) -> str:
    """Return words that begin a sentence, with a capital letter."""
    return words[:1].upper() + words[1:]


@cache
def glyph(name: str) -> Markup:
    """Return a glyph of `glyphs.svg`. It says nothing to a screen reader: a word stands beside it."""
    return Markup('<svg class="glyph" aria-hidden="true"><use href="{}#{}"/></svg>').format(files.address("glyphs.svg"), name)


def chip(state: StateWord) -> Markup:
    """Return a state as its glyph and its word."""
    return Markup('<span class="chip {}">{}{}</span>').format(state.tone, glyph(state.glyph), state.word)


def mark_of(approval: Approval) -> Markup:
    """Return the glyph of an approval's state in its colour, for a place where a sentence says the state."""
    return Markup('<span class="mark {}">{}</span>').format(approval.state.tone, glyph(approval.state.glyph))


def ticks(text: str) -> Markup:
    """Return a text in which what stands between backticks is code."""
    parts = visible_lines(text).split("`")
    if len(parts) % 2 == 0:
        return Markup.escape("`".join(parts))
    return Markup("").join(Markup("<code>{}</code>").format(part) if i % 2 else part for i, part in enumerate(parts))


def covered(calls: str, more: str = "") -> Markup:
    """Return what a grant covers as the end of a sentence; its limit beside rules about commands is a sentence of its own.

    `calls`: the words of `models.pure.policy.covers`. `more`: how long the grant holds.
    """
    plain = calls.removesuffix(f" ({KNOWN_ONLY})")
    limit = (
        ""
        if plain == calls
        else " Where a rule denies or asks about commands, it covers only programs that are known to run no others."
    )
    return Markup("{}{}.{}").format(ticks(plain), more, limit)


def _is_soon(moment: datetime) -> bool:
    return (moment - viewing.now()).total_seconds() < _SOON_SECONDS


def _ago(moment: datetime) -> Markup:
    return _time(moment, "ago", relative_time.ago(moment, viewing.now()))


def _deadline(moment: datetime) -> Markup:
    """Return the time that is left until the deadline of an approval, which does not pass while the workspace is halted."""
    return Markup("halted") if viewing.halted() else _left(moment)


def _left(moment: datetime) -> Markup:
    return _time(moment, "left", relative_time.time_left(moment, viewing.now()))


def _stamp(moment: datetime | str) -> str:
    """Return a time, or the text of a time in a JSON value, to the second."""
    return f"{datetime.fromisoformat(str(moment)):%Y-%m-%d %H:%M:%S} UTC"


def _clock(moment: datetime) -> Markup:
    """Return the time of day, or for another day the date; the whole time shows under the pointer."""
    words = f"{moment:%H:%M}" if moment.date() == viewing.now().date() else f"{moment:%b} {moment.day}"
    stamp = moment.isoformat(timespec="seconds")
    return Markup('<time datetime="{}" title="{}">{}</time>').format(stamp, _stamp(moment), words)


def _time(moment: datetime, how: str, words: str) -> Markup:
    stamp = moment.isoformat(timespec="seconds")
    readable = f"{moment:%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}" title="{}" data-moment="{}">{}</time>').format(stamp, readable, how, words)
