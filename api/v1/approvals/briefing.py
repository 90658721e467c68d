"""What people are told beside an approval, as cards show it."""

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from api.door.responses import ResponseModel, Time, UserId
from api.v1.approvals.visible import sees_all
from models.audit.principal import Principal
from models.briefing import panel, precedent, reasons
from models.briefing.changes import changes_since
from models.briefing.outcome import outcomes_of
from models.briefing.stakes import Stakes
from models.database import clock
from models.database.rows import Db
from models.people.names import Names
from models.session.approval import sentences
from models.session.approval.decider import Decider
from models.session.approval.row import Approval
from models.session.approval.vote import Vote
from models.session.event.fields import ApprovalId


class AtStake(ResponseModel):
    """What the call can do: a command by its words, another call by its tool's declaration."""

    tool: str = Field(examples=["refund of shop"])
    """The tool's name for people."""
    effect: Literal["reads", "writes", "destroys", "unknown"]
    """`unknown` for a tool of the client's, which declares nothing; `destroys` for a command that may take away what nobody
    brings back."""
    at_most_once: bool
    """Whether the call does not run again by itself if its worker is lost: then a person says what became of it."""
    at_client: bool
    """Whether the client runs the call."""
    secrets: int = Field(examples=[0])
    """The number of masked values."""


class LastDenial(ResponseModel):
    """The last denial."""

    approval_id: ApprovalId
    by: str = Field(examples=["Ben"])
    """The name of who denied."""
    message: str = Field(examples=["Never on Friday."])
    at: Time


class Precedent(ResponseModel):
    """What people decided about calls like this one, of the same agent, among the last 100 that were asked."""

    kind: str = Field(examples=["git push"])
    """What such calls have in common."""
    is_first: bool = Field(examples=[False])
    """Whether the agent asks for such a call for the first time."""
    allows: int = Field(examples=[14])
    edits: int = Field(examples=[0])
    """Of these: with another input."""
    answers: int = Field(examples=[0])
    """Answers in the tool's place."""
    denials: int = Field(examples=[1])
    last_denial: LastDenial | None


class Message(ResponseModel):
    """A message to the agent."""

    by: str = Field(examples=["Ben"])
    """Who wrote it; empty if the message names nobody."""
    text: str = Field(examples=["Release 4.2, please."])


class Outcome(ResponseModel):
    """What came of the call."""

    status: str = Field(examples=["done"])
    words: str = Field(examples=["Done in 1.2 s, exit code 0"])
    is_error: bool
    seconds: float | None = Field(examples=[1.2])
    exit_code: int | None = Field(examples=[0])
    line: str = Field(examples=["3 files"])
    """The line of the result that tells most."""


class Seat(ResponseModel):
    """A vote that stands."""

    user_id: UserId
    name: str = Field(examples=["Ben"])
    on_behalf_of: str = Field(examples=[""])
    """The name of the person who delegated the vote; empty if it is the voter's own."""
    result: Literal["allow", "deny", "edit"]
    """`edit`: the person edited the input, and somebody else must allow it."""


class PersonName(ResponseModel):
    """A person who may vote."""

    id: UserId
    name: str = Field(examples=["Anna"])


class Panel(ResponseModel):
    """The people who decide an approval together."""

    seats: list[Seat]
    """The votes so far."""
    missing: int = Field(examples=[1])
    """The number of people who must still allow the call."""
    awaits: str = Field(examples=["one more of finance"])
    """Whose votes are missing, in words; empty if none is."""
    people: list[PersonName]
    """Those who may still vote, by name, at most 12."""
    more: int = Field(examples=[0])
    """The number of others who may still vote."""


class Briefing(ResponseModel):
    """What people are told beside an approval. Its texts have secrets masked."""

    type: Literal["approval_briefing"]
    stakes: AtStake | None
    """Null without a call."""
    last_words: str = Field(examples=["The tests are green, so I push."])
    """What the agent said last before the call."""
    request: Message | None
    """The last message that the agent had when people were asked."""
    since: Message | None
    """The last message that came after people were asked."""
    changes: list[str] = Field(examples=[["When it was asked, the branch was main; it is release now."]])
    """What differs since people were asked, a sentence each."""
    precedent: Precedent | None
    """Null if no call waits to run."""
    panel: Panel | None
    """Null if one person with the role, or one API key, decides."""
    outcome: Outcome | None
    """Null without a call."""
    ending: str = Field(examples=["Allowed for this session by Anna"])
    """How the approval ended, and by whom, by name; empty while it waits."""

    @classmethod
    def of(cls, db: Db, principal: Principal, approval: Approval) -> Callable[[], "Briefing"]:
        """Return a function that returns the briefing of an approval, with as much of the precedent as the principal may see.

        The function reads nothing, and masks the result of the call.
        """
        by = approval.decided_by
        decider = None if sees_all(principal) else Decider.of(db, principal.id, clock.now(db))
        stakes, why = Stakes.of(db, approval), reasons.Reasons.of(db, approval)
        changes = changes_since(db, approval)
        before = precedent.Precedent.of(db, approval, decider)
        people = panel.Panel.of_approval(db, approval, Vote.of_approval(db, approval.id))
        outcome = outcomes_of(db, [approval.tool_call_id]).get(approval.tool_call_id or "")
        ending = "" if approval.status == "pending" else sentences.ending(approval, Names.of(db, [by])[by])
        return lambda: cls(
            type="approval_briefing",
            stakes=AtStake.from_row(stakes, at_most_once=stakes.runs_at_most_once) if stakes else None,
            last_words=why.last_words,
            request=_message(why.request),
            since=_message(why.since),
            changes=changes,
            precedent=_precedent(before),
            panel=_panel(people),
            outcome=Outcome.from_row(outcome) if outcome else None,
            ending=ending,
        )


def _message(message: reasons.Message | None) -> Message | None:
    return Message.from_row(message) if message else None


def _panel(people: panel.Panel | None) -> Panel | None:
    if people is None:
        return None
    return Panel.from_row(
        people,
        awaits=people.awaits,
        seats=[Seat.from_row(seat, user_id=seat.person_id) for seat in people.seats],
        people=[PersonName.from_row(person) for person in people.people],
    )


def _precedent(before: precedent.Precedent | None) -> Precedent | None:
    if before is None:
        return None
    last = before.last_denial
    return Precedent.from_row(before, last_denial=LastDenial.from_row(last) if last else None)
