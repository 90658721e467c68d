"""Explains how the policy would judge a call, and why. Reads only: uses no grant, asks nobody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.database.rows import Db
from models.policy.session_policies import SessionPolicies
from models.pure import shell
from models.pure.masking import mask
from models.pure.offer import Offer
from models.pure.policy import Granted, Verdict
from models.pure.policy.inputs import Input
from models.pure.policy.rules import COMMAND_PATHS
from models.session.approval.grant import Grant
from models.session.row import Session
from models.session.thread.row import Thread
from models.settings import settings
from models.workspace.row import Workspace
from models.workspace.toolset import listings_of


@dataclass(frozen=True)
class Explanation:
    """A verdict, with the command lines and grants that led to it."""

    verdict: Verdict
    lines: dict[str, shell.CommandLine]
    """The command lines in the input, by JSON Pointer."""
    grants: list[Grant]
    """The session's live grants for this tool."""
    offer: Offer
    """The tool's offer. A grant that is not offered allows nothing."""


@dataclass(frozen=True)
class Example:
    """A call that nobody makes, to be explained."""

    tool: str
    input: Mapping[str, Any]
    own_policy: Mapping[str, Any] | None = None
    """A policy that replaces the tool's own."""


def explain(db: Db, agent: Mapping[str, Any], example: Example) -> Explanation:
    """Return the verdict on a call of an agent in a new session. `agent` is the agent's body."""
    return _explanation(example, _policies(db, agent, example))


def explain_in(db: Db, session: Session, thread: Thread, example: Example) -> Explanation:
    """Return the verdict on a call of a thread, by the policies of its path. Its live grants count that the tool still offers."""
    parent: SessionPolicies | None = None
    for above in Thread.path_of(db, session.id, thread.id)[:-1]:
        parent = _policies(db, session.agent_of(db, above), Example(example.tool, {}), parent)
    policies = _policies(db, session.agent_of(db, thread), example, parent)
    of_thread = policies.in_session(git_written=session.git_written, inline=thread.inline)
    return _explanation(example, of_thread, Grant.live(db, thread, {example.tool}))


def _policies(db: Db, agent: Mapping[str, Any], example: Example, parent: SessionPolicies | None = None) -> SessionPolicies:
    one = with_tool(agent, example.tool, example.own_policy)
    return SessionPolicies(one, Workspace.policies(db), settings().default_permission, listings_of(db, one), parent)


def _explanation(example: Example, policies: SessionPolicies, grants: Sequence[Grant] = ()) -> Explanation:
    tool = example.tool
    call = Input(tool, example.input, None)
    texts = [path for path in sorted(COMMAND_PATHS) if isinstance(call.at(path).value, str)]
    lines = {path: line for path in texts if (line := call.line(path))}
    offer = policies.quorum(tool).offer
    rules = tuple(grant.rule for grant in grants if grant.is_offered(offer))
    live_grants = Granted(rules, mask(dict(example.input)).arguments) if rules else None
    return Explanation(policies.judge(tool, example.input, live_grants), lines, list(grants), offer)


def with_tool(agent: Mapping[str, Any], tool: str, own_policy: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the agent with that tool and bash alone, so that little is compiled, and with `own_policy` as the tool's own policy.

    MCP servers keep all tools, since only they know them. `own_policy` then applies to each.
    """
    own = {"permission_policy": own_policy, "policy_from": "tool"} if own_policy else {}
    tools: list[dict[str, Any]] = []
    for entry in agent["tools"]:
        if entry["type"] == "custom":
            tools += [{**entry, **own}] if entry["name"] == tool else []
        elif entry["type"] == "mcp_toolset":
            configs = [{**config, **own} for config in entry["configs"]]
            tools.append({**entry, "default_config": {**entry["default_config"], **own}, "configs": configs})
        else:
            # Bash, too: `SessionPolicies` guards git's files where not every command is allowed.
            configs = [config for config in entry["configs"] if config["name"] in {tool, "bash"}]
            configs = [{**config, **own} if config["name"] == tool else config for config in configs]
            tools.append({**entry, "configs": configs})
    return {**agent, "tools": tools}
