"""Checks that the people who must approve an agent's calls exist, are enough, and have an option that allows."""

from collections.abc import Container, Mapping
from typing import Any

from models.database.rows import Db
from models.errors import Invalid
from models.people.deciders import count, unknown
from models.policy.approval_levels import approval_levels
from models.pure.quorum import Quorum, combined
from models.workspace import roster


def check_agent_approvers(
    db: Db, agent: Mapping[str, Any], workspace: Mapping[str, Any], fields: Container[str], *, at: str = ""
) -> None:
    """Raise Invalid if calls of the agent need approvers whom the workspace does not have. `agent` is the agent after the change.

    Only the agent's `fields`, which the request sets, are searched for unknown names. `at` is the agent's path in the request.
    """
    for path, levels in approval_levels(agent, workspace):
        is_given = path.partition(".")[0] in fields
        _check(db, levels, at + path, own=levels[-1] if is_given else {})
    if "multiagent" in fields or "approval" in fields:
        _check_sub_agents(db, agent, workspace, at)


def _check_sub_agents(db: Db, agent: Mapping[str, Any], workspace: Mapping[str, Any], at: str) -> None:
    """Raise Invalid if the agent's own settings leave a sub-agent of its roster without approvers, or without an option."""
    of_agent = agent.get("approval") or {}
    for member in roster.bodies(db, agent) if of_agent else ():
        for path, (of_workspace, *levels) in approval_levels(member, workspace):
            quorum, escalation = combined([of_workspace, of_agent, *levels], 1)
            where = f"{at}multiagent", f"sub-agent {member['name']}, {path}"
            if not quorum.offer.options:
                raise Invalid(where[0], f"{where[1]}: its settings and those of this agent together leave nothing but deny.")
            for step in (quorum, *(escalation.quorums if escalation else ())):
                if step.needs_people:
                    _check_number(db, step, *where)


def check_workspace_approvers(db: Db, approval: Mapping[str, Any] | None) -> None:
    """Raise Invalid if the workspace's own settings need approvers whom the workspace does not have."""
    _check(db, [approval or {}], "approval", own=approval or {})


def _check(db: Db, levels: list[Mapping[str, Any]], path: str, *, own: Mapping[str, Any]) -> None:
    if not any(levels):
        return
    _check_names(db, own, path)
    quorum, escalation = combined(levels)
    if quorum.needs_people and levels[-1].get("on_timeout") == "allow":
        raise Invalid(
            f"{path}.on_timeout",
            "allow would let the call run without the people whom approvers, required_approvals or four_eyes demand at some level: "
            "use deny, end_run or escalate.",
        )
    if not quorum.offer.options:
        by = "; ".join(f"{option}, by {settings}" for option, settings in quorum.offer.left_out.items())
        raise Invalid(
            f"{path}.options", f"all levels together leave nothing but deny (left out: {by}): name an option that all have."
        )
    if levels[-1].get("on_timeout") == "allow" and not quorum.offer.has("once"):
        raise Invalid(f"{path}.on_timeout", "allow is left out by options: add once, or use deny, end_run or escalate.")
    if quorum.needs_people:
        _check_number(db, quorum, path)
    for step in escalation.quorums if escalation else ():
        _check_number(db, step, path)


def _check_names(db: Db, own: Mapping[str, Any], path: str) -> None:
    approvers = {f"{path}.approvers": own.get("approvers") or []}
    approvers |= {f"{path}.escalate_to.{i}.approvers": step["approvers"] for i, step in enumerate(own.get("escalate_to") or [])}
    for field, names in approvers.items():
        if names and (missing := unknown(db, names)):
            raise Invalid(
                field, f"{missing[0]} is neither a group of this workspace nor an active member with a role that decides."
            )


def _check_number(db: Db, quorum: Quorum, path: str, about: str = "") -> None:
    people = count(db, quorum)
    if people >= quorum.required_people:
        return
    sets = " and in ".join("{" + ", ".join(names) + "}" for names in quorum.approvers)
    has, is_in = ("1 person has", "1 person is") if people == 1 else (f"{people} people have", f"{people} people are")
    who = f"{is_in} in {sets}, the sets of all levels together" if sets else f"{has} a role that decides"
    about = f"{about}: " if about else ""
    raise Invalid(path, f"{about}{who}, and {quorum.required_people} must approve: name more people, or require fewer.")
