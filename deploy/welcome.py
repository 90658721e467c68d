"""The texts of `assent up` for people."""

from pathlib import Path
from typing import Protocol

from deploy.folder import Folder
from deploy.supervisor import Supervisor

SLOW_REDIS = (
    "There is no redis-server here, so an imitation is the broker: about ten tasks a second, and its queue is not stored. "
    "Install redis-server for more."
)
BARE_SHELL = (
    "WARNING: bubblewrap does not work here, so agents' shell commands run without a sandbox, with all rights of this user. "
    "A server that a command starts on localhost also gets the cookie of your sign-in, if your browser opens that server."
)

_READY = """
Assent is up.

  1. Open the sign-in link, which works once:  {sign_in_url}
  2. Then decide in the inbox:                 {inbox_url}

  API      {url}
  key      {key}
  Flower   {flower_url}   name {flower_user}, password {flower_password}
  data     {folder}   ({up} holds all of this for programs)
  model    {model}
{sample}
What to do next, in another terminal:

  {assent} approvals{data_dir}
  curl -H "x-api-key: {key}" {url}/v1/sessions

Ctrl-C ends everything. Waiting sessions continue at the next start.
"""
_SAMPLE = """
A sample session has just started. The sign-in link leads to what it asks, or decide by the first command below.
"""


class Started(Protocol):
    """What the welcome says of an `assent up`."""

    folder: Folder
    started_in: Path
    supervisor: Supervisor
    env: dict[str, str]
    url: str
    sign_in_url: str
    key: str
    command: str
    stand_in: bool

    @property
    def inbox_url(self) -> str:
        """The URL of the inbox."""

    @property
    def flower_url(self) -> str:
        """The URL of Flower."""


def ready(local: Started, *, sample: bool) -> None:
    """Print all URLs, and the commands to type next."""
    user, _, password = local.env["FLOWER_BASIC_AUTH"].partition(":")
    default = local.folder.path.name == ".assent" and local.folder.path.parent == local.started_in
    text = _READY.format(
        url=local.url,
        inbox_url=local.inbox_url,
        sign_in_url=local.sign_in_url,
        key=local.key,
        flower_url=local.flower_url,
        flower_user=user,
        flower_password=password,
        folder=local.folder.path,
        up="up.json",
        model="the stand-in: costs nothing, understands a few words (ANTHROPIC_API_KEY=... for a real one)"
        if local.stand_in
        else local.env.get("ANTHROPIC_BASE_URL", "Anthropic's API"),
        sample=_SAMPLE if sample else "",
        assent=local.command,
        data_dir="" if default else f" --data-dir {local.folder.path}",
    )
    for line in text.splitlines():
        local.supervisor.say(line or " ")
