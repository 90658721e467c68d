"""`assent policy`: for authors of policies. It needs no server and no database."""

import json
from typing import Any

import click

from models.policy.alone import judge_alone


@click.group()
def policy() -> None:
    """Policies: judge calls without a server."""


@policy.command("judge")
@click.argument("lines", type=click.File("r", encoding="utf-8"), default="-")
def policy_judge(lines: Any) -> None:
    """Judge calls by policies, one per line of a file or of standard input.

    A line is JSON: {"policy": POLICY, "tool": NAME, "input": {...}}. The policy is that of a tool, an agent or a workspace, as the
    API takes it. For each line, a line has the verdict, {"effect": "allow" | "ask" | "deny", "rule": TEXT}, or {"error": TEXT}. The
    policy is judged alone: no other level has one, and nothing is granted.
    """
    for line in lines:
        click.echo(json.dumps(_verdict(line)))  # `echo` flushes: a program may wait for the line


def _verdict(line: str) -> dict[str, Any]:
    try:
        match json.loads(line):
            case {"policy": call_policy, "tool": str(tool), "input": dict(call_input)}:
                verdict = judge_alone(call_policy, tool, call_input)
            case _:
                raise ValueError('a line must be an object: {"policy": {...}, "tool": "...", "input": {...}}')
    except ValueError as error:
        return {"error": str(error)}
    return {"effect": verdict.effect, "rule": verdict.rule}
