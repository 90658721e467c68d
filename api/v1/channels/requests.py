"""Requests about channels."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from api.door.requests import Body, Paged, examples, not_null
from models.notices.channel import SETTINGS
from models.notices.services import ChannelKind

Label = Annotated[str, StringConstraints(max_length=100)]
Clock = Annotated[str, StringConstraints(max_length=5)]
Zone = Annotated[str, StringConstraints(max_length=64)]
About = Literal["mine", "groups", "all"]
Timing = Literal["at_once", "reminders"]
Delay = Annotated[int, Field(ge=0, le=86_400)]
Owner = Literal["me", "workspace"]


class ChannelCreate(Body):
    """A new channel."""

    model_config = examples(
        {"kind": "slack", "address": "C012AB3CD", "name": "#approvals"},
        {"owner": "workspace", "kind": "mail", "for_everyone": True, "timing": "reminders"},
        {"owner": "me", "kind": "mail", "quiet_from": "22:00", "quiet_until": "07:00", "time_zone": "Europe/Berlin"},
    )

    owner: Owner | None = None
    """`me`: the person who is signed in. `workspace` needs the scope `admin`. Left out: `me`, or `workspace` for an API key."""
    kind: ChannelKind
    """`apprise`: a service such as Telegram, with its `url`. `operator`: a URL that the operator configured, with its name as
    `address`."""
    address: Annotated[str, StringConstraints(max_length=254)] = ""
    """For a channel of the workspace: a mail address, the id of a Slack conversation, or the name of the operator's URL. For a
    channel of a person: left out, or a Slack user that is linked to the person."""
    url: Annotated[str, StringConstraints(max_length=500)] = ""
    """For the kind `apprise`: the service's URL with its tokens. Stored encrypted, and never shown."""
    for_everyone: bool = False
    """True for the workspace's default: mail for each person who may decide and has no channel."""
    name: Label = ""
    about: About = "all"
    """The approvals that a person's channel announces. `mine`: those that name the person. `groups`: also those that name one of
    the person's groups. `all`: all that the person may decide."""
    timing: Timing = "at_once"
    """`reminders`: only reminders and escalations."""
    tells_outcomes: bool = False
    """Whether to tell as well what came of an allowed call. Slack always does, and a mail to whoever decided by its link."""
    delay_seconds: Delay | None = None
    """How long an approval must have waited before it is told; what is decided earlier is not told. Null: 30 for push, 60 for mail,
    else 0."""
    quiet_from: Clock | None = None
    """`HH:MM` in `time_zone`. Nothing is sent between `quiet_from` and `quiet_until`."""
    quiet_until: Clock | None = None
    time_zone: Zone = "UTC"

    @property
    def options(self) -> dict[str, Any]:
        """The settings of the channel."""
        return {name: getattr(self, name) for name in SETTINGS}


class ChannelUpdate(Body):
    """Changes of a channel. A field that is left out is kept."""

    model_config = examples({"state": "disabled"}, {"timing": "reminders", "quiet_from": None, "quiet_until": None})

    name: Label | None = None
    about: About | None = None
    timing: Timing | None = None
    tells_outcomes: bool | None = None
    delay_seconds: Delay | None = None
    """Null for the kind's own."""
    quiet_from: Clock | None = None
    """Null for no quiet hours."""
    quiet_until: Clock | None = None
    time_zone: Zone | None = None
    state: Literal["enabled", "disabled"] | None = None
    """`enabled` clears `disabled_reason`."""

    _no_null = field_validator("name", "about", "timing", "time_zone", "state", "tells_outcomes", mode="before")(not_null)

    def changes(self) -> dict[str, Any]:
        """Return the fields that the request sets."""
        return self.model_dump(exclude_unset=True)


class ChannelList(Paged):
    """GET /v1/channels: the newest first."""

    owner: Owner | None = None
    """Left out: `me`, or `workspace` for an API key."""
