"""The nouns whose rows a command takes by an id: where their lists are, and what names a row beside its id."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click


@dataclass(frozen=True)
class Noun:
    """A kind of row."""

    path: str
    """Of the list of its rows. Values of the command may stand in it."""
    prefix: str
    """Of its ids."""
    name: str | None = None
    """The field by which people name a row, if they may."""
    queries: tuple[Mapping[str, Any], ...] = ({},)
    """What the list is asked for, one after the other until a row has the name: most lists leave out what is over."""
    kind: str = ""
    """What a principal has before the id, such as `user:`."""


NOUNS = {
    "agent": Noun("/v1/agents", "agent_", "name", ({}, {"include_archived": True})),
    "approval": Noun("/v1/approvals", "appr_", queries=({"status": "pending"}, {"order": "desc"})),
    "channel": Noun("/v1/channels", "chan_"),
    "delegation": Noun("/v1/delegations", "dlgt_", queries=({"live": True}, {})),
    "delivery": Noun("/v1/webhooks/{webhook_id}/deliveries", "whdl_"),
    "environment": Noun("/v1/environments", "env_", "name", ({}, {"include_archived": True})),
    "grant": Noun("/v1/grants", "grnt_", queries=({"live": True}, {})),
    "group": Noun("/v1/organizations/rbac_groups", "grp_", "name", kind="group:"),
    "key": Noun("/v1/organizations/api_keys", "key_"),
    "legal hold": Noun("/v1/legal_holds", "hold_", queries=({"open": True}, {})),
    "person": Noun("/v1/organizations/users", "user_", "email", ({}, {"include_deactivated": True}), "user:"),
    "provider key": Noun("/v1/provider_keys", "pkey_"),
    "session": Noun("/v1/sessions", "sesn_", "title", ({"include_archived": True},)),
    "Slack user": Noun("/v1/slack_users", "slku_"),
    "spend limit": Noun("/v1/spend_limits", "spl_"),
    "webhook": Noun("/v1/webhooks", "whep_"),
}


class IdOf(click.ParamType[str]):
    """The type of an argument or an option that names a row: `with_inbox` passes the row's id to the command."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self.name = noun.replace(" ", "_")
