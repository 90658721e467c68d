"""turn.run: claim, ask the model, store the reply, exit. Nothing waits; the stored rows cause the next step."""

import logging
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from celery.signals import celeryd_after_setup

from models.database import ids
from models.database.transactions import transaction
from models.flow.run import folds, turns
from models.flow.run.folds import Folding, Summary
from models.flow.run.turns import ReplyToStore, TurnFailure, checkpoint, fail_turn, queued_turn
from models.operate.failing import Row, bounded
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
from workers.keeping import keep
from workers.leases import Lease
from workers.offer import Offer
from workers.outcome import (
    BUSY,
    FAILURES,
    LOST,
    NOT_CLAIMED,
    Outcome,
    conclude,
    counted,
    failed,
    plain,
    task,
    tries_again,
)
from workers.providers import ModelError, ModelRequest, Spent, Unwanted, choosing, provider_for
from workers.providers.choosing import Answer, Unanswered

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
    claimed = _claim(turn_id, session_id, workspace_id)
    if not isinstance(claimed, _Claimed):
        return claimed
    turn, offer = claimed.turn, claimed.offer
    with leases.hold(turn.id, turn.fence) as lease:
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
        listed = server_tools.looked_up(turn.workspace_id, offer.agent, offer.listed)
        tools = AgentTools.of(offer.agent, offer.policies, listed, self_hosted=offer.self_hosted)
        answer = _ask(attempt, offer.request(tools))
    except Unwanted as end:
        _correct(turn, charging.spent(offer.charge, end.spent, began))
        return LOST
    except server_tools.ServerAway as away:
        return _fail(attempt, TurnFailure(away.type, str(away), retryable=away.passes, server=away.server)) or LOST
    except Unanswered as unanswered:
        charges = charging.spent(offer.charge, unanswered.spent, began)
        return _fail_by_model(attempt, unanswered.error, charges, None if offer.folding else unanswered.served)
    charges = charging.charged(offer.charge, answer, began)
    if offer.folding:
        return _fold(attempt, offer.folding, answer, charges)
    return _checkpoint(attempt, tools, answer, charges)


def _claim(turn_id: str, session_id: str, workspace_id: str) -> _Claimed | Outcome:
    if not leases.ready():
        return BUSY
    claimed: _Claimed | Outcome = NOT_CLAIMED
    with bounded("turn.run", Row(Turn, turn_id, workspace_id, session_id)), transaction(workspace_id) as db:
        if queued := queued_turn(db, session_id, turn_id):
            offer = Offer.of(queued)
            if turn := queued.claim(leases.worker(), offer.charge, task()):
                claimed = _Claimed(turn, offer)
    return claimed


def _ask(attempt: _Attempt, request: ModelRequest) -> Answer:
    """Return the reply of the agent's model, or of an alternative. The session's readers get the text while the model writes."""
    turn, offer = attempt.turn, attempt.offer
    pusher = _Pusher(turn.session_id, attempt.message_id, attempt.lease)
    try:
        order = choosing.candidates(offer.agent["model"], offer.policies.get("model"), turn.kept)
        answer = choosing.ask(order, request, offer.keys, pusher.check if request.folds else pusher.on_text)
        _check_answerable(answer)
        return answer
    except ModelError as error:
        raise Unanswered(error, None) from error
    except (Unanswered, Unwanted):
        raise
    except Exception as error:
        # The turn must end here, and not when its lease does.
        log.exception("turn %s: the provider failed", turn.id)
        raise Unanswered(ModelError("failed", f"The provider failed: {type(error).__name__}."), None) from error


def _check_answerable(answer: Answer) -> None:
    """Check that each call of the reply has an id and a name that are strings. Raises Unanswered."""
    for block in answer.reply.content:
        if block["type"] == "tool_use" and not (isinstance(block.get("id"), str) and isinstance(block.get("name"), str)):
            error = ModelError("failed", "The model's reply holds a tool call without an id or a name.")
            place = answer.served.provider, answer.served.model
            raise Unanswered(error, None, [*answer.spent, Spent(place, answer.reply.usage)])


def _checkpoint(attempt: _Attempt, tools: AgentTools, answer: Answer, charges: list[Charge]) -> Outcome:
    turn, reply = attempt.turn, answer.reply
    outcome: Outcome = LOST

    def verb(locked: Locked) -> None:
        nonlocal outcome
        step = checkpoint(locked, Turn.held(locked.db, turn.id, turn.fence), to_store)
        calls = counted((call.status, "" if call.status == "refused" else call.name) for call in step.calls)
        outcome = failed(step.error) if step.error else calls or f"replied: {plain(reply.stop_reason)}"

    try:
        to_store = ReplyToStore(
            content=storable(reply.content),
            stop_reason=storable(reply.stop_reason),
            stop_details=storable(reply.stop_details),
            charges=charges,
            proposals=tools.proposals(reply.content),
            message_id=attempt.message_id,
            served=answer.served,
        )
        if keep(turn, attempt.lease, verb):
            return outcome
        _correct(turn, charges)
    except Exception as error:  # noqa: BLE001 - the turn ends, whatever the reply holds
        log.error("turn %s: its reply could not be stored (%s)", turn.id, type(error).__name__)
        fault = ModelError("failed", f"The model's reply could not be stored ({type(error).__name__}).")
        return _fail_by_model(attempt, fault, charges)
    return LOST


def _fold(attempt: _Attempt, folding: Folding, answer: Answer, charges: list[Charge]) -> Outcome:
    turn, content = attempt.turn, storable(answer.reply.content[0])

    def fold(locked: Locked) -> None:
        held = Turn.held(locked.db, turn.id, turn.fence)
        folds.fold(locked, held, folding, Summary(content, charges, answer.served))

    if keep(turn, attempt.lease, fold):
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

    def verb(locked: Locked) -> None:
        nonlocal outcome
        held = Turn.held(locked.db, turn.id, turn.fence)
        fail_turn(locked, held, failure)
        name = code or failure.kind
        outcome = tries_again(name) if held.status == "queued" else failed(name)

    return outcome if keep(turn, attempt.lease, verb) else None


def _correct(turn: Turn, charges: list[Charge]) -> None:
    """Replace the estimated usage of an attempt that ended, or was taken back, while the model answered."""

    def correct_usage(locked: Locked) -> None:
        turns.correct_usage(locked, turn, charges)

    try:
        keep(turn, Lease(turn.id, turn.fence), correct_usage)
    except Exception as error:  # noqa: BLE001 - the estimate stays
        log.warning("turn %s: its usage stays an estimate (%s)", turn.id, type(error).__name__)


class _Pusher:
    """Sends text to the session's readers while the model writes: a note every `delta_seconds`, not per token."""

    def __init__(self, session_id: str, message_id: str, lease: Lease) -> None:
        self.session_id, self.message_id, self.lease = session_id, message_id, lease
        start = EventStart(type="event_start", event={"id": message_id, "type": "agent.message"})
        self.frames: list[EventStart | EventDelta] = [start]
        self.pieces: dict[int, list[str]] = {}
        self.offset = 0
        self.sent = time.monotonic()

    def check(self, _index: int, _piece: str) -> None:
        """Ignore a piece of text. Raises Unwanted if nobody waits for the reply any more."""
        if self.lease.lost.is_set():
            raise Unwanted

    def on_text(self, index: int, piece: str) -> None:
        """Add a piece of the text block `index`, and send all pieces when it is time. Raises Unwanted as `check` does."""
        self.check(index, piece)
        self.pieces.setdefault(index, []).append(piece)
        if time.monotonic() - self.sent >= settings().delta_seconds:
            self._push()

    def _push(self) -> None:
        for index, pieces in self.pieces.items():
            text = "".join(pieces)
            delta = ContentDelta(type="content_delta", index=index, content={"type": "text", "text": text})
            event_id, offset = self.message_id, self.offset
            self.frames.append(EventDelta(type="event_delta", event_id=event_id, delta=delta, offset=offset))
            self.offset += len(text)
        enqueue.publish([], {self.session_id: {"frames": self.frames}})
        self.frames, self.pieces, self.sent = [], {}, time.monotonic()
