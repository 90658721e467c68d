"""turn.run: claim, ask the model, store the reply, exit. Nothing waits; the stored rows cause the next step."""

import logging
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

from celery.signals import celeryd_after_setup

from models.database import ids
from models.database.rows import Db
from models.database.trace import Run, going_on
from models.database.transactions import transact
from models.flow.run import folds, turns
from models.flow.run.folds import Folding, Summary
from models.flow.run.turns import ReplyToStore, TurnFailure, checkpoint, fail_turn, queued_turn
from models.operate.failing import TaskRow, bounded
from models.pure.folding import MOST_FOLDS
from models.pure.json.storable import storable
from models.pure.pricing.charges import Charge
from models.pure.text import words
from models.session.locked import Locked
from models.session.turn.events import ContentDelta, EventDelta, EventStart
from models.session.turn.row import Served, Turn
from models.settings import settings
from models.settings.providers import registry
from workers import charging, enqueue, leases, server_tools
from workers.agent_tools import AgentTools
from workers.celery import app
from workers.keeping import commit_held, commit_with_retry
from workers.leases import Lease
from workers.offer import Offer
from workers.outcome import (
    BUSY,
    FAILURES,
    LOST,
    NOT_CLAIMED,
    Outcome,
    conclude,
    counts_in_words,
    failed,
    plain,
    task,
    tries_again,
)
from workers.providers import Consumption, ModelError, Unwanted, choosing, provider_for
from workers.providers.choosing import NoReply, ServedReply

log = logging.getLogger(__name__)

_ERROR_TYPES = {
    "overloaded": "model_overloaded_error",
    "rate_limited": "model_rate_limited_error",
    "timed_out": "model_request_failed_error",
    "failed": "model_request_failed_error",
    "gone": "model_request_failed_error",
    "billing": "billing_error",
    "invalid": "model_request_failed_error",
    "unacceptable": "model_request_failed_error",
    "too_long": "compaction_limit_reached_error",
}


@celeryd_after_setup.connect
def load_provider(instance: Any, **_: Any) -> None:
    """Load the SDKs and prices before the first turn. Loading takes seconds, and stops all greenlets of the process."""
    if "turns" in instance.app.amqp.queues.consume_from:
        for entry in registry():
            provider_for(entry, None)
        charging.load()


@dataclass(frozen=True)
class _Claimed:
    """A turn that this worker has claimed, and its request."""

    turn: Turn
    offer: Offer
    run: Run | None
    """The turn's run, if it is traced."""


@dataclass(frozen=True)
class _Attempt:
    """An attempt at a turn, under the turn's lease."""

    turn: Turn
    offer: Offer
    """The turn's request."""
    lease: Lease
    message_id: str = field(default_factory=lambda: ids.new("sevt"))
    """The id of the message under which the session's readers get the text while the model writes."""


@app.task(name="turn.run", throws=FAILURES)
def run(turn_id: str, session_id: str, workspace_id: str) -> str:
    """Make one attempt at one turn. Returns the outcome. Raises FAILURES or Retry for Flower: the row says what happens next."""
    return conclude(attempt(turn_id, session_id, workspace_id))


def attempt(turn_id: str, session_id: str, workspace_id: str) -> Outcome:
    """Make one model call, from claim to checkpoint. A late, repeated or wrong message claims nothing. Returns the outcome."""
    claim = _claim(turn_id, session_id, workspace_id)
    if not isinstance(claim, _Claimed):
        return claim
    turn, offer = claim.turn, claim.offer
    with leases.hold(turn) as lease, going_on(claim.run):
        ours = _Attempt(turn, offer, lease)
        if offer.folding and turn.folds >= MOST_FOLDS:
            failure = TurnFailure("compaction_limit_reached_error", words.folded_too_often(turn.folds), retryable=False)
            return _fail(ours, failure) or LOST
        return _work(ours)


def _work(attempt: _Attempt) -> Outcome:
    """Ask the model, and store its reply or its error."""
    turn, offer = attempt.turn, attempt.offer
    began = turn.started_at or datetime.now(UTC)
    try:
        tools, served_reply = _ask(attempt)
    except Unwanted as end:
        _correct(turn, charging.charges_without_reply(offer.charge, end.consumptions, began))
        return LOST
    except server_tools.ServerAway as away:
        return _fail(attempt, TurnFailure(away.type, str(away), retryable=away.passes, server=away.server)) or LOST
    except NoReply as no_reply:
        charges = charging.charges_without_reply(offer.charge, no_reply.consumptions, began)
        return _fail_by_model(attempt, no_reply.error, charges, None if offer.folding else no_reply.served)
    charges = charging.charges_of_reply(offer.charge, served_reply, began)
    if offer.folding:
        return _fold(attempt, offer.folding, served_reply, charges)
    return _checkpoint(attempt, tools, served_reply, charges)


def _claim(turn_id: str, session_id: str, workspace_id: str) -> _Claimed | Outcome:
    if not leases.ready():
        return BUSY

    def claim(db: Db) -> _Claimed | Outcome:
        queued_row = queued_turn(db, session_id, turn_id, *Offer.reads(session_id, turn_id))
        if queued_row is None:
            return NOT_CLAIMED
        offer = Offer.of(queued_row)
        turn = queued_row.claim(leases.worker(), offer.charge, task())
        thread = queued_row.locked.thread
        return _Claimed(turn, offer, Run.of(thread.id, thread.trace)) if turn else NOT_CLAIMED

    outcome: _Claimed | Outcome = NOT_CLAIMED
    with bounded("turn.run", TaskRow(Turn, turn_id, workspace_id, session_id)):
        outcome = transact(workspace_id, claim)
    return outcome  # noqa: RET504 - `bounded` may end the block early


def _ask(attempt: _Attempt) -> tuple[AgentTools, ServedReply]:
    """Return the tools that the model was offered, and its reply, or that of an alternative.

    The session's readers get the text while the model writes.
    """
    turn, offer = attempt.turn, attempt.offer
    pusher = _Pusher(turn, attempt.message_id, attempt.lease)
    try:
        listings = server_tools.current_listings(turn.workspace_id, offer.agent, offer.listings)
        tools = offer.tools(listings)
        request = offer.request(tools)
        order = choosing.candidates(offer.agent["model"], offer.policies.get("model"), turn.kept)
        served_reply = choosing.ask(order, request, offer.keys, pusher.check if request.folds else pusher.on_text)
        _check_calls(served_reply)
        return tools, served_reply
    except ModelError as error:
        raise NoReply(error, None) from error
    except (NoReply, Unwanted, server_tools.ServerAway):
        raise
    except Exception as error:
        # The turn must end here, and not when its lease does.
        log.exception("turn %s: the model could not be asked", turn.id)
        raise NoReply(ModelError("failed", f"The model could not be asked: {type(error).__name__}."), None) from error


def _check_calls(served_reply: ServedReply) -> None:
    """Check that each call of the reply has an id and a name that are strings. Raises NoReply."""
    for block in served_reply.reply.content:
        if block["type"] == "tool_use" and not (isinstance(block.get("id"), str) and isinstance(block.get("name"), str)):
            error = ModelError("failed", "The model's reply holds a tool call without an id or a name.")
            place = served_reply.served.provider, served_reply.served.model
            raise NoReply(error, None, [*served_reply.consumptions, Consumption(place, served_reply.reply.usage)])


def _checkpoint(attempt: _Attempt, tools: AgentTools, served_reply: ServedReply, charges: list[Charge]) -> Outcome:
    turn, reply = attempt.turn, served_reply.reply
    outcome: Outcome = LOST

    def verb(locked: Locked, row: Turn) -> None:
        nonlocal outcome
        step = checkpoint(locked, row, to_store)
        calls = counts_in_words((call.status, "" if call.status == "refused" else call.name) for call in step.calls)
        outcome = failed(step.error) if step.error else calls or f"replied: {plain(reply.stop_reason)}"

    try:
        to_store = ReplyToStore(
            content=storable(reply.content),
            stop_reason=storable(reply.stop_reason),
            stop_details=storable(reply.stop_details),
            charges=charges,
            proposals=tools.proposals(reply.content),
            message_id=attempt.message_id,
            served=served_reply.served,
        )
        if commit_held(turn, attempt.lease, verb):
            return outcome
        _correct(turn, charges)
    except Exception as error:  # noqa: BLE001 - the turn ends, whatever the reply holds
        log.error("turn %s: its reply could not be stored (%s)", turn.id, type(error).__name__)
        fault = ModelError("failed", f"The model's reply could not be stored ({type(error).__name__}).")
        return _fail_by_model(attempt, fault, charges)
    return LOST


def _fold(attempt: _Attempt, folding: Folding, served_reply: ServedReply, charges: list[Charge]) -> Outcome:
    turn, content = attempt.turn, storable(served_reply.reply.content[0])

    def fold(locked: Locked, row: Turn) -> None:
        folds.fold(locked, row, folding, Summary(content, charges, served_reply.served))

    if commit_held(turn, attempt.lease, fold):
        return "folded older turns"
    _correct(turn, charges)
    return LOST


def _fail_by_model(attempt: _Attempt, error: ModelError, charges: list[Charge], served: Served | None = None) -> Outcome:
    """End or retry the turn after a model's error. If the request was for a summary, the prompt is not at fault."""
    turn, folding = attempt.turn, attempt.offer.folding is not None
    message, shorten = str(error), False
    if error.kind == "too_long":
        shorten = not folding and turn.overlong_after is None
        message = message if shorten else words.too_long(message)
    failure = TurnFailure(
        _ERROR_TYPES[error.kind],
        message,
        error.retryable,
        retry_after=error.retry_after,
        leave_out=not folding and error.kind in ("unacceptable", "too_long"),
        charges=charges,
        served=served,
        shorten=shorten,
    )
    outcome = _fail(attempt, failure, error.code)
    if outcome is None:
        _correct(turn, charges)
    return outcome or LOST


def _fail(attempt: _Attempt, failure: TurnFailure, code: str = "") -> Outcome | None:
    """End or retry the turn. Returns None if this worker has lost the turn. `code`: the error's short name; else its kind."""
    turn = attempt.turn
    outcome: Outcome | None = None
    failure = replace(failure, message=storable(failure.message))

    def verb(locked: Locked, row: Turn) -> None:
        nonlocal outcome
        fail_turn(locked, row, failure)
        name = code or failure.kind
        outcome = tries_again(name) if row.status == "queued" else failed(name)

    return outcome if commit_held(turn, attempt.lease, verb) else None


def _correct(turn: Turn, charges: list[Charge]) -> None:
    """Replace the estimated usage of an attempt that ended, or was taken back, while the model wrote."""

    def correct_usage(locked: Locked) -> None:
        turns.correct_usage(locked, turn, charges)

    try:
        commit_with_retry(turn, Lease(turn.id, turn.fence), correct_usage)
    except Exception as error:  # noqa: BLE001 - the estimate stays
        log.warning("turn %s: its usage stays an estimate (%s)", turn.id, type(error).__name__)


class _Pusher:
    """Sends text to the thread's readers while the model writes: a note every `delta_seconds`, not per token.

    Once per `preview_seconds` a note also has the whole text so far, for readers who joined late. Text is stored nowhere.
    """

    def __init__(self, turn: Turn, message_id: str, lease: Lease) -> None:
        self.turn, self.message_id, self.lease = turn, message_id, lease
        self.start = EventStart(type="event_start", event={"id": message_id, "type": "agent.message"})
        self.frames: list[EventStart | EventDelta] = [self.start]
        self.pieces: dict[int, list[str]] = {}
        self.texts: dict[int, str] = {}
        """The text so far, by block."""
        self.offset = 0
        self.last_push = time.monotonic()
        self.preview_at = self.last_push + settings().preview_seconds

    def check(self, _index: int, _piece: str) -> None:
        """Ignore a piece of text. Raises Unwanted if nobody waits for the reply any more."""
        if self.lease.lost.is_set():
            raise Unwanted

    def on_text(self, index: int, piece: str) -> None:
        """Add a piece of the text block `index`, and send all pieces when it is time. Raises Unwanted as `check` does."""
        self.check(index, piece)
        self.pieces.setdefault(index, []).append(piece)
        if time.monotonic() - self.last_push >= settings().delta_seconds:
            self._push()

    def _push(self) -> None:
        for index, pieces in self.pieces.items():
            text = "".join(pieces)
            self.frames.append(self._delta(index, text, self.offset))
            self.texts[index] = self.texts.get(index, "") + text
            self.offset += len(text)
        now = time.monotonic()
        note: dict[str, Any] = {"frames": self.frames, "thread": self.turn.thread_id}
        if now >= self.preview_at:
            note["so_far"] = self._so_far()
            self.preview_at = now + max(settings().preview_seconds, self.offset / _PREVIEWED_PER_SECOND)
        enqueue.publish([], {self.turn.session_id: note})
        self.frames, self.pieces, self.last_push = [], {}, now

    def _so_far(self) -> list[EventStart | EventDelta]:
        """Return the frames of a preview with the whole text so far."""
        offsets = accumulate((len(text) for text in self.texts.values()), initial=0)
        deltas = (self._delta(index, text, offset) for (index, text), offset in zip(self.texts.items(), offsets, strict=False))
        return [self.start, *deltas]

    def _delta(self, index: int, text: str, offset: int) -> EventDelta:
        delta = ContentDelta(type="content_delta", index=index, content={"type": "text", "text": text})
        return EventDelta(type="event_delta", event_id=self.message_id, delta=delta, offset=offset)


_PREVIEWED_PER_SECOND = 50_000
"""Characters per second that readers are sent anew at most, so that a very long text is sent anew less often."""
