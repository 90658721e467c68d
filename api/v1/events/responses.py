"""Events in lists and in streams. The classes that describe an event stand in `models.session`, where the event is emitted."""

from functools import partial
from types import new_class
from typing import Annotated, Any, NotRequired, Union

from pydantic import ConfigDict, Field, RootModel, SerializeAsAny

from api.door.responses import DescribedBy, ResponseModel, ThreadId
from api.v1.agents.responses import SessionAgent
from api.v1.blocks import MessageBlock, Result
from api.v1.spending.amounts import ActiveUsage, Budget
from models.session.approval import confirmation, grant
from models.session.approval import events as of_approval
from models.session.event import of_session, of_thread
from models.session.event.fields import ShownFields, Text
from models.session.tool_call import events as of_call
from models.session.turn import events as of_turn

_RESULT = list[Result | Text]


class CrossPosted(ShownFields):
    """The fields that lists and streams add to an event that can be in the streams of two threads."""

    session_thread_id: NotRequired[ThreadId]
    """The thread of a sub-agent to which the event belongs. Absent if the event belongs to the session's own thread."""


def _as_shown(event: Any, *, shown: Any = ShownFields, **fields: Any) -> Any:
    """Return the class of an event as lists and streams show it. `shown`: the class of what they add.

    `fields` have the API's own classes: these describe JSON that the API checked when it arrived, or that it also shows by itself.
    """

    optional = {name: NotRequired[hint] for name, hint in fields.items() if name in event.__optional_keys__}

    def fill(namespace: dict[str, Any]) -> None:
        namespace |= {"__module__": event.__module__, "__doc__": event.__doc__, "__annotations__": fields | optional}

    return new_class(event.__name__, (shown, event), exec_body=fill)


_crossing = partial(_as_shown, shown=CrossPosted)
"""The same for an event that can be cross-posted."""


def _one_of(*events: Any) -> Any:
    return Annotated[Union[events], Field(discriminator="type")]  # noqa: UP007 - `|` takes no list


_OF_CLIENTS = (
    _as_shown(of_session.StoredMessage, content=list[MessageBlock]),
    _as_shown(of_session.StoredInterrupt),
    _crossing(confirmation.StoredConfirmation),
    _crossing(of_call.StoredResult, content=list[Result]),
    _crossing(of_call.StoredToolResult, content=list[Result]),
    _crossing(of_approval.ApprovalVoted),
)
"""The events that a client's own event becomes."""
_STORED = (
    *_OF_CLIENTS,
    _as_shown(of_session.AgentMessage),
    _as_shown(of_turn.AgentThinking),
    _as_shown(of_turn.ContextCompacted),
    _crossing(of_call.AgentToolUse, approval=of_approval.PendingApproval),
    _crossing(of_call.AgentMcpToolUse, approval=of_approval.PendingApproval),
    _crossing(of_call.AgentCustomToolUse, approval=of_approval.PendingApproval),
    _as_shown(of_call.AgentToolResult, content=_RESULT),
    _as_shown(of_call.AgentMcpToolResult, content=_RESULT),
    _as_shown(of_turn.SessionError),
    _as_shown(of_session.StatusRunning),
    _as_shown(of_session.StatusRescheduled),
    _as_shown(of_session.StatusIdle),
    _as_shown(of_session.StatusTerminated),
    _as_shown(of_thread.ThreadCreated),
    _as_shown(of_thread.ThreadRunning),
    _as_shown(of_thread.ThreadRescheduled),
    _as_shown(of_thread.ThreadIdle),
    _as_shown(of_thread.ThreadTerminated),
    _as_shown(of_thread.MessageSent),
    _as_shown(of_thread.MessageReceived),
    _as_shown(of_session.SessionUpdated, budget=Budget | None, agent=SessionAgent),
    _as_shown(of_session.SessionUsage, usage=ActiveUsage, budget=Budget | None),
    _as_shown(of_turn.RequestStart),
    _as_shown(of_turn.RequestEnd),
    _crossing(of_approval.ApprovalRequested),
    _crossing(of_approval.ApprovalClosed),
    _crossing(of_approval.ApprovalEscalated),
    _crossing(of_approval.ApprovalExtended),
    _crossing(of_approval.ApprovalReminded),
    _crossing(grant.GrantGiven),
    _as_shown(of_turn.ModelFallback),
)
_STREAMED = (_one_of(*_STORED), _as_shown(of_session.DeletedEvent), of_turn.EventStart, of_turn.EventDelta)

Json = dict[str, Any]


class SentEvents(ResponseModel):
    """The stored events."""

    data: SerializeAsAny[list[Annotated[Json, DescribedBy(_one_of(*_OF_CLIENTS))]]]


class EventPage(ResponseModel):
    """Events. Send `next_page` as `page` to get the next ones."""

    data: SerializeAsAny[list[Annotated[Json, DescribedBy(_one_of(*_STORED))]]]
    next_page: str | None


class StreamFrame(RootModel[Json]):
    """The `data` of a server-sent event. The field `event` holds its type; the field `id`, if present, its position."""

    model_config = ConfigDict(defer_build=True)  # only the document needs its schema, which takes long to make

    root: Annotated[Json, DescribedBy(Union[_STREAMED])]  # noqa: UP007 - `|` takes no list
