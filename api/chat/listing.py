"""A stored session as messages in OpenAI's format: prompts, replies with their calls, and a message for each call's result.

Secrets are masked as in events. A call that waits for its result has no message of the role tool yet. A client's call that waits
for an approval is left out, since clients run the calls that they see. So is a model's attempt to call the tool that asks people.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from api.chat import asking, responses
from api.chat.ending import called
from api.chat.preview import APART
from api.chat.requests import MessageList
from api.door.paging import Order, Selection, page
from api.v1.events.routes import runs_tools
from models.audit.principal import Principal
from models.database.rows import Db
from models.flow.run.archived import ArchivedTurns
from models.flow.run.history import edited_input
from models.pure.masking import Echoes
from models.pure.naming import is_reserved
from models.pure.text import words
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.event.row import Event
from models.session.row import Session
from models.session.thread.row import own_id
from models.session.tool_call import events as call_events
from models.session.tool_call.echoes import echoes_of
from models.session.tool_call.input import CallInput
from models.session.tool_call.result import CallResult
from models.session.tool_call.row import ToolCall
from models.session.turn.reply import Reply
from models.session.turn.row import Turn

ASCENDING: Order[Turn] = Order("messages", (Turn.number,), descending=False)
_OF_TURNS = "WHERE session_id = %(session)s AND turn_id = ANY(%(turns)s)"
_PROMPTS = f"{_OF_TURNS} AND type = 'user.message' ORDER BY seq"
_CALLS = f"{_OF_TURNS} AND status <> 'replaced' AND announced ORDER BY turn_id, position, created_at"
_QUEUED = (
    "WHERE session_id = %(session)s AND thread_id = %(thread)s AND type = 'user.message' AND processed_at IS NULL ORDER BY seq"
)


Message = Callable[[], responses.ListedMessage]
"""Returns a message, and reads nothing."""


def listed(db: Db, principal: Principal, session: Session, query: MessageList) -> Callable[[], responses.ListedMessages]:
    """Return a function that returns the messages of a page of turns, and reads nothing.

    The last page ends with the messages that no turn has read yet.
    """
    turns, after = page(
        db, Selection(Turn).equal(session_id=session.id, thread_id=own_id(session.id)), ASCENDING, query.limit, query.page
    )
    queued = [] if after else db.find(Event, _QUEUED, session=session.id, thread=own_id(session.id))
    asks = [] if after else asking.asks(db, principal, session, query.approvals).calls
    messages: list[Message] = [
        *_of_turns(db, session, turns, whole=runs_tools(principal)),
        *([partial(responses.ListedMessage, role="assistant", content=None, tool_calls=asks)] if asks else []),
        *(partial(_prompt, event) for event in queued),
    ]
    return lambda: responses.ListedMessages(object="list", data=[message() for message in messages], next_page=after)


def _of_turns(db: Db, session: Session, turns: Sequence[Turn], *, whole: bool) -> list[Message]:
    of_turns = {"session": session.id, "turns": [turn.id for turn in turns]}
    prompts = db.find(Event, _PROMPTS, **of_turns)
    replies = {reply.turn_id: reply for reply in db.find(Reply, "WHERE turn_id = ANY(%(turns)s)", turns=of_turns["turns"])}
    calls = db.find(ToolCall, _CALLS, **of_turns)
    ids = [call.id for call in calls]
    inputs = {row.tool_call_id: row for row in db.find(CallInput, "WHERE tool_call_id = ANY(%(ids)s)", ids=ids)}
    decisions = _decisions(db, ids)
    results = {row.tool_call_id: row for row in db.find(CallResult, "WHERE tool_call_id = ANY(%(ids)s)", ids=ids)}
    archived = ArchivedTurns.of_turns(db, session, turns)
    prompts = sorted(prompts + archived.events, key=lambda event: event.seq)
    replies, inputs, results = archived.replies | replies, archived.inputs | inputs, archived.results | results
    messages: list[Message] = []
    for turn in turns:
        messages += [partial(_prompt, event) for event in prompts if event.turn_id == turn.id]
        if turn.status == "done" and turn.id not in replies:
            messages.append(partial(responses.ListedMessage, role="assistant", content="\n".join(archived.faults) or None))
            continue
        of_turn = [call for call in calls if call.turn_id == turn.id and not is_reserved(call.name) and call.id in inputs]
        messages += _reply(replies.get(turn.id), of_turn, inputs, whole=whole)
        messages += [
            _result(db, call, inputs[call.id], results[call.id], decisions.get(call.id, []))
            for call in of_turn
            if call.id in results
        ]
    return messages


def _decisions(db: Db, call_ids: list[str]) -> dict[str, list[responses.ListedDecision]]:
    """Return the decisions on calls by the call's id, oldest first."""
    approvals = db.find(Approval, "WHERE tool_call_id = ANY(%(ids)s)", ids=call_ids) if call_ids else []
    votes = Vote.of(db, [approval.id for approval in approvals])
    decisions: dict[str, list[responses.ListedDecision]] = {}
    for approval in sorted(approvals, key=Approval.age):
        decisions.setdefault(str(approval.tool_call_id), []).append(responses.ListedDecision.of(approval, votes[approval.id]))
    return decisions


def _prompt(event: Event) -> responses.ListedMessage:
    blocks = event.body["content"]
    if len(blocks) == 1 and blocks[0]["type"] == "text":
        return responses.ListedMessage(role="user", content=blocks[0]["text"])
    return responses.ListedMessage(role="user", content=[_part(block) for block in blocks])


def _part(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "text":
        return {"type": "text", "text": block["text"]}
    source = block.get("source")
    if block["type"] != "image" or not isinstance(source, dict):
        return {"type": "text", "text": words.left_out(block["type"])}
    url = source["url"] if source["type"] == "url" else f"data:{source['media_type']};base64,{source['data']}"
    return {"type": "image_url", "image_url": {"url": url}}


def _reply(reply: Reply | None, calls: list[ToolCall], inputs: dict[str, CallInput], *, whole: bool) -> list[Message]:
    """Return the message of a turn; none if the model said nothing."""
    texts = [block["text"] for block in reply.content if block["type"] == "text" and block["text"]] if reply else []
    listed_calls = [called(call, _input(call, inputs[call.id], whole=whole)) for call in calls]
    if not texts and not listed_calls:
        return []
    content = APART.join(texts) if texts else None
    if not listed_calls:
        return [partial(responses.ListedMessage, role="assistant", content=content)]
    return [partial(responses.ListedMessage, role="assistant", content=content, tool_calls=listed_calls)]


def _input(call: ToolCall, row: CallInput, *, whole: bool) -> dict[str, Any]:
    """Return the input as the call's event has it: the proposed input of a call of ours, masked."""
    if call.kind in call_events.OF_CLIENT and whole:
        return row.input
    if row.shown_input is not None:
        return row.shown_input
    return row.input if row.proposed_input is None else row.proposed_input


def _result(db: Db, call: ToolCall, row: CallInput, result: CallResult, decisions: list[responses.ListedDecision]) -> Message:
    """Return the message of a result as the model got it: after the words about a person's edit, and with secrets masked."""
    is_edited = call.status == "done" and row.proposed_input is not None
    before = [words.edited(edited_input(db, call.id, row.input))] if is_edited else []
    of_assent = {"assent": responses.OfListed(approvals=decisions)} if decisions else {}
    return partial(_shown_result, call, before, echoes_of(db, call), result.content, **of_assent)


def _shown_result(
    call: ToolCall, before: list[str], echoes: Echoes, content: list[dict[str, Any]], **more: Any
) -> responses.ListedMessage:
    texts = before + [_text(block) for block in echoes.value(content)]
    if call.is_error and not texts:
        texts = [words.failed_silently()]
    return responses.ListedMessage(role="tool", tool_call_id=call.id, content=APART.join(texts), **more)


def _text(block: dict[str, Any]) -> str:
    text: str = block["text"] if block["type"] == "text" else words.left_out(block["type"])
    return text
