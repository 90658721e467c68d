"""One policy, judged without a workspace, an agent or a database: for tests of policies."""

from collections.abc import Mapping
from typing import Any

from models.policy.session_policies import SessionPolicies
from models.pure.naming import is_reserved
from models.pure.policy import Verdict, policy_of
from models.workspace.agent import BUILTIN_TOOLS


def judge_alone(policy: Mapping[str, Any], tool: str, arguments: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a call of a tool with this policy, where no other level has one and nothing is granted.

    Raises ValueError for what is not a policy, or not a tool's name.
    """
    policy_of(policy, tool=tool)  # a stored policy that cannot be read denies; here the fault is told
    if not tool or is_reserved(tool):
        raise ValueError(f"tool: {tool!r} cannot be a tool's name")
    own = {"name": tool, "permission_policy": dict(policy)}
    if tool in BUILTIN_TOOLS:
        entry = {"type": "agent_toolset_20260401", "default_config": {}, "configs": [own | {"enabled": True}]}
    else:
        entry = {"type": "custom", **own}
    return SessionPolicies({"tools": [entry]}, {}, "ask").judge(tool, arguments)
