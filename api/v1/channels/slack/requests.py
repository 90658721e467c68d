"""The requests that Slack posts for clicks: the fields of the payload `block_actions` that a decision needs."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

SlackId = Annotated[str, StringConstraints(pattern=r"^[A-Z0-9]{2,32}$")]


class _Part(BaseModel):
    """An object in Slack's payload, which may have more fields."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Named(_Part):
    """An object with an id."""

    id: SlackId


class _User(_Named):
    """The Slack user who clicked."""

    username: str = ""
    name: str = ""
    team_id: SlackId | None = None
    """The user's own team. In a shared channel it may differ from the app's team."""


class _Container(_Part):
    """The message with the button."""

    channel_id: SlackId
    message_ts: str


class _Action(_Part):
    """One click."""

    action_id: str
    value: str = ""


class BlockActions(_Part):
    """The payload of a click. https://docs.slack.dev/reference/interaction-payloads/block_actions-payload"""

    user: _User
    team: _Named | None = None
    enterprise: _Named | None = None
    """The organization of an app that an Enterprise Grid has installed; `team` is null then."""
    container: _Container
    actions: list[_Action] = Field(min_length=1, max_length=25)

    @property
    def team_id(self) -> str:
        """The team to which the user belongs; empty if Slack names none."""
        home = self.team or self.enterprise
        return self.user.team_id or (home.id if home else "")

    @property
    def user_name(self) -> str:
        """The user's name, for people to read."""
        return self.user.username or self.user.name or self.user.id
