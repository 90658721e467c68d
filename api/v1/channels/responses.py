"""Responses about channels."""

from typing import Literal, Self

from pydantic import Field

from api.door.examples import IDS
from api.door.responses import ResponseModel, Time
from models.notices import channel
from models.notices.services import ChannelKind


class Channel(ResponseModel):
    """A destination of notifications about approvals, of a person or of the workspace. Its secrets are never shown."""

    id: str = Field(examples=[IDS["channel_id"]])
    type: Literal["channel"]
    person: str | None = Field(examples=[f"user:{IDS['user_id']}"])
    """Null for a channel of the workspace."""
    for_everyone: bool = Field(examples=[False])
    """True for the workspace's default: mail for each person who may decide and has no channel."""
    follows_default: bool = Field(examples=[False])
    """True for a person's channel that was created from the default and not changed since."""
    kind: ChannelKind = Field(examples=["mail"])
    name: str = Field(examples=["Work"])
    address: str = Field(examples=["anna@example.com"])
    """The public part: a mail address, a Slack conversation or user, the service's or the operator's name."""
    about: Literal["mine", "groups", "all"] = Field(examples=["all"])
    timing: Literal["at_once", "reminders"] = Field(examples=["at_once"])
    tells_outcomes: bool = Field(examples=[False])
    """Whether the channel tells as well what came of a call that was allowed."""
    delay_seconds: int = Field(examples=[60])
    """How long an approval must have waited before it is told."""
    quiet_from: str | None = Field(examples=["22:00"])
    quiet_until: str | None = Field(examples=["07:00"])
    time_zone: str = Field(examples=["Europe/Berlin"])
    state: Literal["enabled", "disabled"]
    disabled_reason: str = Field(examples=[""])
    """Why Assent disabled the channel; empty if it is enabled, or if somebody disabled it."""
    error: str = Field(examples=[""])
    """Why the last attempt failed; empty after a success."""
    sent_at: Time | None
    """The time of the last success."""
    created_at: Time
    updated_at: Time

    @classmethod
    def of(cls, row: channel.Channel) -> Self:
        """Return a channel."""
        return cls.from_row(
            row, person=f"user:{row.person_id}" if row.person_id else None, delay_seconds=round(row.delay.total_seconds())
        )


class ChannelTest(ResponseModel):
    """A test message to a channel, with one attempt."""

    id: str = Field(examples=["ntfn_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
    type: Literal["channel_test"]
    channel_id: str = Field(examples=[IDS["channel_id"]])
    status: Literal["queued", "running", "done", "failed", "cancelled"]
    """`done`: the channel accepted the message. `cancelled`: the channel was disabled meanwhile, or its Slack user is no longer
    linked."""
    error: str = Field(examples=["The Slack conversation is archived."])
    """Why the test failed; empty unless `status` is `failed`."""
    created_at: Time
    ended_at: Time | None


class ChannelDeleted(ResponseModel):
    """The channel is deleted."""

    id: str = Field(examples=[IDS["channel_id"]])
    type: Literal["channel_deleted"]
