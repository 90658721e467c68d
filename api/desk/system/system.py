"""The page of the system, for admins of a workspace: what waits and for how long, who works, what fails, and what to do.

It shows the workspace's own rows. Of the installation it shows when each sweep last succeeded, and whether Redis answers: neither
tells anything of another workspace. What concerns all workspaces is for the operator: `assent doctor`, metrics, Flower.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from api.desk.shell.blueprint import page
from api.door.framed import FramedPage
from api.v1.health.routes import redis_state
from models.audit.seals import SignedHead
from models.database import clock
from models.database.rows import Db
from models.notices.channel import Channel
from models.notices.flood import Flood
from models.operate import readiness, system
from models.operate.system import Queue, Sweeps
from models.outbox.endpoint import Endpoint
from models.people.principal import PersonPrincipal
from models.pure.state_words import SERVICE, SYSTEM
from models.pure.text.relative_time import number_with_noun, span
from models.pure.text.visible import visible
from models.workspace.halt import Halt
from models.workspace.row import Workspace

MOST = 20
"""Endpoints and channels that the page lists."""
_FAILURES = {
    "model_overloaded_error": "the model was overloaded",
    "model_rate_limited_error": "a rate limit was reached",
    "model_request_failed_error": "a request had no usable reply",
    "billing_error": "the provider refused to bill a request",
    "compaction_limit_reached_error": "a conversation was too long for the model",
    "tool_use_limit_reached_error": "a turn had too many tool calls",
}
"""Failures of models, by the type of their error."""


@dataclass(frozen=True)
class Alarm:
    """Something that needs somebody."""

    title: str
    to_do: str
    path: str = ""
    """The page on which to do it; empty if the operator does it."""


@dataclass(frozen=True)
class State:
    """What the page reads of the workspace."""

    queues: list[Queue]
    late: list[Queue]
    sweeps: Sweeps
    endpoints: list[Endpoint]
    channels: list[Channel]
    reasons: list[str]
    unsealed: str
    """Why the audit is not sealed; empty if it is."""


@page("/inbox/system", "system", "admin")
def show(db: Db, person: PersonPrincipal) -> FramedPage:
    """Show how the system stands."""
    now, workspace = clock.now(db), db.get_one(Workspace, person.workspace_id)
    halt = Halt.current(db)
    queues = system.queues(db, now)
    state = State(
        queues,
        [queue for queue in queues if queue.is_late(now, is_halted=halt is not None)],
        system.sweeps(db, now),
        db.find(Endpoint, _FAILING_ENDPOINTS, most=MOST),
        db.find(Channel, _FAILING_CHANNELS, most=MOST),
        [] if halt else readiness.reasons(db),
        workspace.seal_alarm or workspace.seal_stopped or "",
    )
    return FramedPage(
        "system/system.html",
        words=SERVICE | SYSTEM,
        state=state,
        alarms=[*_alarms(state, now), *_floods(db), *_kept_admins(db)],
        redis=redis_state,
        replies=system.replies(db, now),
        model_errors=[(_FAILURES.get(kind, kind), count) for kind, count in system.model_errors(db, now)],
        toolsets=system.toolsets(db, now),
        seal=SignedHead.newest(db, workspace.id),
        halt=halt,
        late={queue.name for queue in state.late},
        most=system.MOST,
    )


def _alarms(state: State, now: datetime) -> Iterator[Alarm]:
    """Yield what needs somebody, the gravest first."""
    if state.unsealed:
        title = f"The audit is not sealed: {state.unsealed}"
        yield Alarm(title, "Treat it as an intrusion until it is verified from another machine.", "/inbox/audit/verify")
    if state.sweeps.newest is None or now - state.sweeps.newest > system.LATE:
        since = f"for {span((now - state.sweeps.newest).total_seconds())}" if state.sweeps.newest else "yet"
        yield Alarm(
            f"No sweep has run {since}", "Have the operator start the processes beat and sweeps: no deadline passes without them."
        )
    elif state.sweeps.late:
        names = ", ".join(name for name, _ in state.sweeps.late)
        yield Alarm(f"Some sweeps do not succeed: {names}", "Have the operator look at the log of sweeps, which names the error.")
    for queue in state.late:
        if queue.oldest:
            title = f"{queue.name} have waited for {span((now - queue.oldest).total_seconds())}"
            yield Alarm(title, "Have the operator start more workers of this queue, or look why they are busy.")
    for reason in state.reasons:
        yield Alarm(reason[:1].upper() + reason[1:], "Have the operator start a worker that can do it, or end the session's run.")
    if state.endpoints:
        title = f"{number_with_noun(len(state.endpoints), 'webhook')} cannot be delivered"
        yield Alarm(title, "Repair the endpoint, or disable it. Each delivery is tried again for three days.", "/inbox/webhooks")
    if state.channels:
        takes = "takes" if len(state.channels) == 1 else "take"
        title = f"{number_with_noun(len(state.channels), 'channel')} {takes} no messages at the moment"
        yield Alarm(title, "Send a test: the channel says what is wrong.", "/inbox/workspace/channels")


def _floods(db: Db) -> Iterator[Alarm]:
    if floods := Flood.each(db):
        title = f"Too many approvals wait for {'one person' if len(floods) == 1 else f'{len(floods)} people'}"
        yield Alarm(title, "Let others decide too, or make rules of what is asked most.", "/inbox/insights?show=people")


def _kept_admins(db: Db) -> Iterator[Alarm]:
    for name, source, is_last in db.rows(_KEPT_ADMINS, most=MOST):
        title = f"{visible(name)} is {'the last' if is_last else 'still an'} admin, and {source} no longer gives that role"
        remedy = "Make somebody else an admin, or have the person's groups restored at the issuer."
        yield Alarm(title, remedy if is_last else "The role ends at the person's next sign-in there.", "/inbox/people")


_KEPT_ADMINS = """
    SELECT person.name, member.source, NOT EXISTS (
        SELECT FROM member other WHERE other.workspace_id = member.workspace_id AND other.person_id <> member.person_id
        AND other.role = 'admin' AND other.deactivated_at IS NULL
    )
    FROM member JOIN person ON person.id = member.person_id
    WHERE member.workspace_id = current_setting('assent.workspace') AND kept_admin_at IS NOT NULL AND deactivated_at IS NULL
    ORDER BY person.id LIMIT %(most)s
"""
_FAILING_ENDPOINTS = "WHERE failing_since IS NOT NULL AND state = 'enabled' ORDER BY failing_since LIMIT %(most)s"
_FAILING_CHANNELS = "WHERE error <> '' AND state = 'enabled' AND NOT for_everyone ORDER BY id LIMIT %(most)s"
