"""The rows of a list of approvals: what each asks, whether the person may choose it, and what came of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from api.desk import waiting_list
from api.desk.rendering.gist import Gist, gist
from models.briefing.outcome import CallOutcome, outcomes_of
from models.briefing.stakes import Chip, Stakes
from models.database.rows import Db
from models.people.names import Names
from models.people.principal import PersonPrincipal
from models.pure.quorum import Quorum
from models.session.approval import sentences
from models.session.approval.evidence import CHANGES_A_FILE, Evidence
from models.session.approval.face import ROW, Face
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.event.tasks import tasks_of
from models.session.row import Session
from models.session.thread.row import Thread

_MOST_TASK = 120
"""Most characters of a sub-agent's task in a line."""


@dataclass(frozen=True)
class ListedApproval:
    """One approval in a list."""

    approval: Approval
    gist: Gist
    face: Face
    """All that would run, if the row has room for it: a chosen row shows it."""
    agent: str
    """The agent that asks, behind those above it."""
    task: str
    """What the agent was told to do; empty for a session's own agent."""
    session: str
    """The session's title; empty without one."""
    ending: str
    """How the approval ended, and by whom; empty while it waits."""
    call: CallOutcome | None
    """What came of the call, once people or a deadline have decided; None without a call."""
    effect: Chip | None
    """What the call may do, as its card says it; None once it is decided, and for other kinds than calls to run."""
    votes: str
    """How many of the required people have allowed it, such as `1 of 2`; empty if one is enough."""
    may_choose: bool
    """True if the person may decide, and the kind of approval needs only yes or no."""
    may_allow: bool
    """True if a chosen row shows the whole call, and the approval offers to allow it once."""

    @property
    def is_open(self) -> bool:
        """True if more is to come of the decision, so that the page looks again."""
        return self.call is not None and self.call.tone == "waits"

    @property
    def result(self) -> str:
        """What came of an allowed call in a line; empty for others, whose ending says it."""
        return self.call.sentence if self.call is not None and self.approval.status == "allowed" else ""


def rows_of(db: Db, person: PersonPrincipal, approvals: Sequence[Approval]) -> list[ListedApproval]:
    """Return the approvals as rows, in their order."""
    Thread.read_ahead(db, approvals)
    tasks = tasks_of(db, [(row.session_id, row.thread_id) for row in approvals])
    ids = list({row.session_id for row in approvals})
    sessions = {row.id: row for row in db.find(Session, "WHERE id = ANY(%(ids)s)", ids=ids)}
    votes = Vote.of(db, [row.id for row in approvals])
    names = Names.of(db, [row.decided_by for row in approvals])
    calls = outcomes_of(db, (row.tool_call_id for row in approvals if row.status == "allowed"))
    may = waiting_list.decidable(db, person, approvals, votes)
    sizes = Evidence.sizes(db, (row.id for row in approvals if row.tool in CHANGES_A_FILE))
    effects = Stakes.effects_of(db, (row for row in approvals if row.status == "pending" and row.traits.asks_to_run))
    return [
        ListedApproval(
            row,
            gist(row, sizes.get(row.id)),
            face := Face.of(row, ROW),
            agent=row.path(db),
            task=sentences.shortened(" ".join(tasks.get(row.thread_id, "").split()), _MOST_TASK),
            session=sessions[row.session_id].title or "",
            ending="" if row.status == "pending" else sentences.ending(row, names[row.decided_by]),
            call=calls.get(row.tool_call_id or ""),
            effect=effects.get(row.id),
            votes=_votes(row, votes[row.id]),
            may_choose=not row.traits.why_no_click and row.id in may,
            may_allow=face.is_whole and row.offer.has("once"),
        )
        for row in approvals
    ]


def _votes(approval: Approval, cast: Sequence[Vote]) -> str:
    needed = Quorum.of(approval.quorum).required_people
    return f"{sum(vote.result == 'allow' for vote in cast)} of {needed}" if needed > 1 and approval.status == "pending" else ""
