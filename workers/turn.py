"""turn.run: claim, ask the model, store the reply, exit. Nothing waits; the stored rows cause the next step."""

import logging
import time
from dataclasses import asdict, dataclass
from typing import Any

from celery.signals import celeryd_after_setup

from models import flow
from models.database import ids
from models.database.rows import Db
from models.database.transactions import transaction
from models.errors import NotFound
from models.pure import words
from models.pure.storable import storable
from models.session.session import Session
from models.session.turn import Turn
from models.settings import settings
from models.workspace.toolset import Listed, listed
from workers import enqueue, leases, server_tools
from workers.celery import app
from workers.judging import Judge
from workers.keeping import keep
from workers.leases import Lease
from workers.providers import ModelError, ModelRequest, Reply, provider_for

log = logging.getLogger(__name__)

_ERROR_TYPES = {
    "overloaded": "model_overloaded_error",
    "rate_limited": "model_rate_limited_error",
    "failed": "model_request_failed_error",
    "billing": "billing_error",
    "invalid": "model_request_failed_error",
    "unacceptable": "model_request_failed_error",
}


class LeaseLostError(Exception):
    """The turn was ended or taken back while the model answered: stop reading."""


@celeryd_after_setup.connect
def load_provider(instance: Any, **_: Any) -> None:
    """Load the SDK before the first turn. Loading takes a second, and stops all greenlets of the process."""
    if "turns" in instance.app.amqp.queues.consume_from:
        provider_for("")


@dataclass(frozen=True)
class Claimed:
    """A turn, with the rows that were read under the lock."""

    turn: Turn
    agent: dict[str, Any]
    policies: dict[str, Any]
    listed: dict[str, Listed]
    messages: list[dict[str, Any]]

    def request(self, judge: Judge) -> ModelRequest:
        """The request to the model."""
        parallel = not self.agent.get("disable_parallel_tool_use")
        return ModelRequest(
            model=self.agent["model"]["id"],
            system=self.agent["system"] if parallel else _guided(self.agent["system"]),
            messages=self.messages,
            tools=judge.offered(),
            max_tokens=settings().max_tokens,
            parallel=parallel,
            long_wait=judge.asks,
        )


@app.task(name="turn.run")
def run(turn_id: str, session_id: str, workspace_id: str) -> None:
    """One model call, from claim to checkpoint. A late, repeated or wrong message claims nothing."""
    claimed = _claim(turn_id, session_id, workspace_id)
    if claimed is None:
        return
    turn = claimed.turn
    with leases.hold(turn.id, turn.fence) as lease:
        message_id = ids.new("sevt")
        try:
            judge = Judge.of(claimed.agent, claimed.policies, server_tools.looked_up(workspace_id, claimed.agent, claimed.listed))
            reply = _ask(claimed.request(judge), session_id, message_id, lease)
        except LeaseLostError:
            return
        except server_tools.ServerAway as away:
            _fail(turn, lease, away.type, str(away), retryable=away.passes, server=away.server)
        except ModelError as error:
            _fail_by_model(turn, lease, error)
        else:
            _checkpoint(turn, lease, judge, reply, message_id)


def _claim(turn_id: str, session_id: str, workspace_id: str) -> Claimed | None:
    if not leases.ready():
        return None
    with transaction(workspace_id) as db:
        try:
            session = flow.lock(db, session_id)
        except NotFound:
            return None
        turn = flow.claim_turn(db, session, turn_id, leases.worker())
        if turn is None:
            return None
        agent = session.agent(db)
        return Claimed(
            turn=turn,
            agent=agent,
            policies=flow.policies(db, session),
            listed=listed(db, agent),
            messages=flow.history(db, session_id),
        )


def _guided(system: str | None) -> str:
    """The system prompt of an agent that must call one tool at a time."""
    return f"{system}\n\n{words.one_at_a_time()}" if system else words.one_at_a_time()


def _ask(request: ModelRequest, session_id: str, message_id: str, lease: Lease) -> Reply:
    """The model's reply. Its text goes to the session's readers while the model writes."""
    pusher = _Pusher(session_id, message_id, lease)
    try:
        return _answerable(provider_for(request.model).ask(request, pusher.on_text))
    except (ModelError, LeaseLostError):
        raise
    except Exception as error:
        # The turn must end here, and not when its lease does.
        log.exception("turn %s: the provider failed", lease.id)
        raise ModelError("failed", f"The provider failed: {type(error).__name__}.") from error


def _answerable(reply: Reply) -> Reply:
    """The reply, if each of its calls has an id and a name that are strings. Errors: ModelError."""
    for block in reply.content:
        if block["type"] == "tool_use" and not (isinstance(block.get("id"), str) and isinstance(block.get("name"), str)):
            raise ModelError("failed", "The model's reply holds a tool call without an id or a name.")
    return reply


def _checkpoint(turn: Turn, lease: Lease, judge: Judge, reply: Reply, message_id: str) -> None:
    def verb(db: Db, session: Session) -> None:
        flow.checkpoint(
            db,
            session,
            Turn.held(db, turn.id, turn.fence),
            content=content,
            stop_reason=storable(reply.stop_reason),
            stop_details=storable(reply.stop_details),
            usage=asdict(reply.usage),
            proposals=proposals,
            message_id=message_id,
        )

    try:
        content, proposals = storable(reply.content), judge.proposals(reply.content)
        keep(turn.workspace_id, turn.session_id, lease, verb)
    except Exception as error:  # noqa: BLE001 - the turn ends, whatever the reply holds
        log.error("turn %s: its reply could not be stored (%s)", turn.id, type(error).__name__)
        _fail_by_model(turn, lease, ModelError("failed", f"The model's reply could not be stored ({type(error).__name__})."))


def _fail_by_model(turn: Turn, lease: Lease, error: ModelError) -> None:
    out = error.kind == "unacceptable"
    kind = _ERROR_TYPES[error.kind]
    _fail(turn, lease, kind, str(error), retryable=error.retryable, retry_after=error.retry_after, leave_out=out)


def _fail(turn: Turn, lease: Lease, kind: str, message: str, *, retryable: bool = True, **more: Any) -> None:
    def verb(db: Db, session: Session) -> None:
        held = Turn.held(db, turn.id, turn.fence)
        flow.fail_turn(db, session, held, kind=kind, message=storable(message), retryable=retryable, **more)

    keep(turn.workspace_id, turn.session_id, lease, verb)


class _Pusher:
    """Sends text to the session's readers while the model writes: a note every `delta_seconds`, not per token."""

    def __init__(self, session_id: str, message_id: str, lease: Lease) -> None:
        self.session_id, self.message_id, self.lease = session_id, message_id, lease
        self.frames: list[dict[str, Any]] = [{"type": "event_start", "event": {"id": message_id, "type": "agent.message"}}]
        self.pieces: dict[int, list[str]] = {}
        self.sent = time.monotonic()

    def on_text(self, index: int, piece: str) -> None:
        """A piece of the text block `index`."""
        if self.lease.lost.is_set():
            raise LeaseLostError
        self.pieces.setdefault(index, []).append(piece)
        if time.monotonic() - self.sent >= settings().delta_seconds:
            self._push()

    def _push(self) -> None:
        for index, pieces in self.pieces.items():
            delta = {"type": "content_delta", "index": index, "content": {"type": "text", "text": "".join(pieces)}}
            self.frames.append({"type": "event_delta", "event_id": self.message_id, "delta": delta})
        enqueue.publish([], {self.session_id: {"frames": self.frames}})
        self.frames, self.pieces, self.sent = [], {}, time.monotonic()
