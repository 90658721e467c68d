"""Notices as Slack's blocks, within Slack's limits. No text of an agent becomes markup.

Texts of others stand in `plain_text`, which Slack does not parse, or escaped in a code block. Slack counts the characters of the
escaped text; astral characters count twice, as in JavaScript. https://docs.slack.dev/reference/block-kit/blocks
"""

from typing import Any

from models.notices.notice import ALONE, Notice
from models.notices.slack_button import RESULTS, Button
from models.pure.text.visible import visible, visible_lines

HEADER = 150
SECTION = 3000
CONTEXT = 2000
FALLBACK = 300
"""Characters of the text in notifications; Slack takes 40,000."""

Block = dict[str, Any]
_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LABELS = {"allow": ("Allow", "primary"), "deny": ("Deny", "danger")}
_FENCE = "```"
_BROKEN_FENCE = "`\u200b`\u200b`"
"""Looks like a fence, but does not end a code block."""


def escape(text: str) -> str:
    """Return the text for `mrkdwn`, with every mention, link and entity disabled."""
    return "".join(_ESCAPED.get(character, character) for character in text)


def message(notice: Notice) -> tuple[str, list[Block]]:
    """Return the message's fallback text and its blocks."""
    blocks = [_header(notice.sentence or notice.title)]
    if notice.outcome:
        blocks.append(_section(_plain("\n".join(filter(None, (notice.ending, notice.came_of))), SECTION)))
    if notice.evidence:
        blocks.append(_section(_code(notice.evidence)) | {"expand": True})
    elif notice.title != notice.sentence:
        blocks.append(_section(_plain(notice.title, SECTION)))
    if about := [part for part in (_plain(notice.agent, CONTEXT), _deadline(notice)) if part["text"]]:
        blocks.append({"type": "context", "elements": about})
    if notice.buttons:
        blocks.append({"type": "actions", "elements": _buttons(notice)})
    blocks.append({"type": "context", "elements": [_markup(link(notice))]})
    return fallback(notice), blocks


def fallback(notice: Notice) -> str:
    """Return the text for Slack's notifications and screen readers."""
    return _cut(visible(f"{notice.outcome}: {notice.title}" if notice.outcome else notice.title), FALLBACK)


def link(notice: Notice) -> str:
    """Return the sentence with the link to the approval's page."""
    place = f"<{escape(notice.url)}|Open in Assent>"
    if notice.outcome or notice.stage in ALONE:
        return f"{place}."
    if "allow" in notice.buttons:
        more = " to deny with a message, and for further answers."
    else:
        more = " to read all that would run, and for other answers." if notice.buttons else " to decide."
    code = f" Without a sign-in you need the code {escape(notice.code)}." if notice.code else ""
    return f"{place}{more}{code}"


def _header(text: str) -> Block:
    return {"type": "header", "text": _plain(text.replace("\n", " "), HEADER)}


def _section(text: Block) -> Block:
    return {"type": "section", "text": text}


def _plain(text: str, most: int) -> Block:
    """Return a text object without markup. Slack decodes entities in such a text, so the text is escaped too."""
    return {"type": "plain_text", "text": _cut(visible_lines(text), most), "emoji": False}


def _markup(text: str) -> Block:
    """Return a text object with Assent's own links. `verbatim`: Slack detects no further links and names in the text."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def _code(text: str) -> Block:
    harmless = visible_lines(text).replace(_FENCE, _BROKEN_FENCE)
    return _markup(f"{_FENCE}\n{_cut(harmless, SECTION - 2 * len(_FENCE) - 2)}\n{_FENCE}")


def _deadline(notice: Notice) -> Block:
    if notice.deadline is None:
        return _markup("")
    at = f"{notice.deadline:%Y-%m-%d %H:%M} UTC"
    when = f"<!date^{int(notice.deadline.timestamp())}^{{date_short_pretty}} at {{time}}|{at}>"
    return _markup(f"Waits until {when}. {_cut(visible(notice.afterwards), 200)}")


def _buttons(notice: Notice) -> list[Block]:
    value = Button(notice.workspace_id, notice.approval_id, notice.input_sha256).value
    return [
        {
            "type": "button",
            "action_id": action_id,
            "text": {"type": "plain_text", "text": _LABELS[result][0], "emoji": False},
            "style": _LABELS[result][1],
            "value": value,
        }
        for action_id, result in RESULTS.items()
        if result in notice.buttons
    ]


def _cut(text: str, most: int) -> str:
    """Return the escaped text, cut to `most` characters as Slack counts. A cut text ends with the number of missing characters."""
    pieces = [escape(character) for character in text]
    sizes = [len(piece) + (piece > "\uffff") for piece in pieces]
    if sum(sizes) <= most:
        return "".join(pieces)
    room, count = most - len(f"… ({len(pieces)} more characters)"), 0
    while room >= sizes[count]:
        room -= sizes[count]
        count += 1
    return "".join(pieces[:count]) + f"… ({len(pieces) - count} more characters)"
