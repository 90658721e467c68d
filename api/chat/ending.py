"""The results of a run: the client's calls, the approvals, the tokens, and the reason of its end."""

import json
from dataclasses import dataclass

from api.chat import asking, responses
from api.chat.preview import APART
from api.chat.waiting import Wait
from api.door.errors import Denied
from api.v1.sessions.waiting import for_people
from models.database.rows import Db
from models.database.transactions import transaction
from models.session.row import Session
from models.session.stream_position import streamed
from models.session.thread.row import PRESENT_TURNS, own_id
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall
from models.session.turn.row import Turn

MODEL_FAILED = 502
_CUT = frozenset({"max_tokens", "model_context_window_exceeded"})


@dataclass(frozen=True)
class End:
    """The end of a reply."""

    finish_reason: responses.FinishReason
    sentences: str
    """Text that asks for approvals; empty for none, and if a listing of the session asks already. No event stores it."""
    tool_calls: list[responses.ToolCall]
    """Calls of the client's tools, and calls that ask for approvals."""
    usage: responses.CompletionUsage
    assent: responses.OfAssent


def end(wait: Wait) -> End:
    """Return the results of the run, and record that this client knows all events so far.

    Raises Denied, with status 502, if the run ended because the model failed.
    """
    with transaction(wait.principal.workspace_id) as db:
        session = db.get_one(Session, wait.place.session_id)
        stop_reason = wait.rest.body.get("stop_reason", {}) if wait.rest else session.stop_reason or {}
        asks = asking.asks(db, wait.principal, session, wait.place.approvals)
        calls = [*_calls_of_client(db, session), *asks.calls]
        waiting = for_people(db, [session])[session.id]
        turn = db.first(Turn, _LAST, session=session.id, thread=own_id(session.id))
        if not wait.reader.hung_up():
            ended = session.status == "idle" and stop_reason.get("type") != "requires_action"
            streamed(db, session.id, wait.principal.id, wait.reader.seq, ended=ended)
    if stop_reason.get("type") == "retries_exhausted" and wait.error and not wait.running:
        raise Denied(MODEL_FAILED, f"The model failed, so the run ended: {wait.error['message']}", **{"x-should-retry": "false"})
    cut = turn is not None and turn.stop_reason in _CUT
    reason = "content_filter" if stop_reason.get("type") == "refusal" else "length" if cut else "stop"
    assent = responses.OfAssent.from_row(
        None,
        session_id=session.id,
        waiting_on=waiting,
        running=wait.running,
        ignored=wait.place.ignored,
    )
    sentences = "" if wait.listing else APART.join(asks.sentences)
    return End("tool_calls" if calls else reason, sentences, calls, _usage(wait.usage), assent)  # type: ignore[arg-type]  # one of the literals


def _calls_of_client(db: Db, session: Session) -> list[responses.ToolCall]:
    """Return the calls that wait for the client's results."""
    calls = db.find(ToolCall, _OPEN, session=session.id)
    inputs = {
        row.tool_call_id: row.input for row in db.find(CallInput, "WHERE tool_call_id = ANY(%(ids)s)", ids=[c.id for c in calls])
    }
    return [called(call, inputs[call.id]) for call in calls]


_OPEN = f"WHERE turn_id = {PRESENT_TURNS} AND status = 'with_client' AND kind = 'custom' ORDER BY position"
_LAST = "WHERE id = (SELECT turn_id FROM thread WHERE session_id = %(session)s AND id = %(thread)s)"


def called(call: ToolCall, call_input: dict[str, object]) -> responses.ToolCall:
    """Return a call with this input in OpenAI's format."""
    function = responses.CalledFunction(name=call.name, arguments=json.dumps(call_input, ensure_ascii=False))
    return responses.ToolCall(id=call.id, type="function", function=function)


def _usage(tokens: dict[str, int]) -> responses.CompletionUsage:
    cached, written = tokens["cache_read_input_tokens"], tokens["cache_creation_input_tokens"]
    prompt, completion = tokens["input_tokens"] + cached + written, tokens["output_tokens"]
    details = responses.PromptTokens(cached_tokens=cached, cache_write_tokens=written)
    return responses.CompletionUsage(
        prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion, prompt_tokens_details=details
    )
