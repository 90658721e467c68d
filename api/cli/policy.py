"""`assent policy`: for authors of policies. `judge` needs no server; `try`, `simulate` and `suggest` ask the API."""

import json
from collections.abc import Iterator
from typing import Any, TextIO

import click

from api.cli.client import Inbox, with_inbox
from api.cli.main import Number, as_json, next_command
from api.cli.nouns import IdOf
from api.cli.showing import since
from api.cli.tables import Column, painted, show_table
from models.pure.state_words import PAST_CALL
from models.pure.text.relative_time import number_with_noun
from models.pure.text.visible import visible

EFFECTS = ("allow", "ask", "deny")


@click.group()
def policy() -> None:
    """Policies: judge calls, try one by an agent's policies, simulate a rule on past calls, find rules that save questions."""


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
    from models.policy.alone import judge_alone

    try:
        match json.loads(line):
            case {"policy": call_policy, "tool": str(tool), "input": dict(call_input)}:
                verdict = judge_alone(call_policy, tool, call_input)
            case _:
                raise ValueError('a line must be an object: {"policy": {...}, "tool": "...", "input": {...}}')
    except (ValueError, RecursionError) as error:
        return {"error": str(error)}
    return {"effect": verdict.effect, "rule": verdict.rule}


@policy.command("try")
@click.argument("tool")
@click.argument("input_text", metavar="INPUT")
@click.option("--agent", type=IdOf("agent"), help="The agent that would make the call, by name or id.")
@click.option("--session", "session_id", type=IdOf("session"), help="Or the session, by id or title: with its grants.")
@as_json
@with_inbox
def policy_try(inbox: Inbox, tool: str, input_text: str, as_json: bool, **caller: str | None) -> None:
    """Show what would become of a call, and the rules that say so. The call is not made.

    INPUT is JSON; for bash, a command: assent policy try bash "git push" --agent Sample
    """
    if (caller["agent"] is None) == (caller["session_id"] is None):
        raise click.UsageError("name either --agent or --session.")
    body = {"tool": tool, "input": _input(tool, input_text), **{name: value for name, value in caller.items() if value}}
    explanation = inbox.call("POST", "/v1/policy/explain", json=body)
    for line in [json.dumps(explanation, indent=1)] if as_json else _explained(explanation):
        click.echo(line)


@policy.command("simulate")
@click.argument("effect", type=click.Choice(EFFECTS), required=False)
@click.argument("match", required=False)
@click.option("--policy", "file", type=click.File(encoding="utf-8"), help="In the place of a rule: a whole policy, as JSON.")
@click.option("--agent", type=IdOf("agent"), help="Of this agent's policy, by name or id.  [default: of the workspace's]")
@click.option("--tool", help="Only calls of this tool; with --policy, of this tool's policy.")
@click.option("--days", type=Number(0, 366, min_open=True), default=7, show_default=True, help="How many days back.")
@as_json
@with_inbox
def policy_simulate(inbox: Inbox, effect: str | None, match: str | None, file: TextIO | None, as_json: bool, **where: Any) -> None:
    """Show what a rule, or a policy in a FILE, would have changed about the calls of the last days. Nothing is changed.

    Such as: assent policy simulate allow "bash(git status *)" --agent Sample
    """
    if (match is None) == (file is None):
        raise click.UsageError("give a rule, EFFECT and MATCH, or a policy by --policy FILE.")
    agent = where.pop("agent")
    body = {name: value for name, value in where.items() if value is not None}
    body |= {"permission_policy": _policy(file)} if file else {"rule": {"effect": effect, "match": match}}
    body |= {"agent_id": agent} if agent else {}
    simulation = inbox.call("POST", "/v1/policy/simulate", json=body)
    if as_json:
        click.echo(json.dumps(simulation, indent=1))
        return
    _show_simulation(simulation)


@policy.command("suggest")
@click.option("--agent", type=IdOf("agent"), help="Only rules of this agent, by name or id.")
@as_json
@with_inbox
def policy_suggest(inbox: Inbox, agent: str | None, as_json: bool) -> None:
    """Show rules that would have answered questions as people did, by the newest calls that they decided. Nothing is changed."""
    query = {"agent_id": agent} if agent else {}
    suggestions = inbox.call("GET", "/v1/policy/suggestions", params=query)
    if as_json:
        click.echo(json.dumps(suggestions, indent=1))
        return
    for suggestion in suggestions["data"]:
        suggestion["rule"]["match"] = str(suggestion["rule"]["match"])
    columns = [
        Column("RULE", lambda one: one["rule"]["effect"], coloured=True),
        Column("CALLS", lambda one: one["rule"]["match"], gives_way=True),
        Column("AGENT", lambda one: one["agent_name"], gives_way=True),
        Column("ANSWERS", lambda one: f"{one['answers']} of {one['questions']}", to_the_right=True),
        Column("LAST", lambda one: since(one["newest_at"])),
    ]
    show_table(suggestions["data"], False, columns)
    partly = "" if suggestions["complete"] else " Not every rule was tried."
    click.echo(f"By {number_with_noun(suggestions['looked_at'], 'decided call')}, the newest. No decision is contradicted.{partly}")
    if suggestions["data"]:
        click.echo("Before you save one: " + next_command('policy simulate EFFECT "CALLS" --agent AGENT'))


def _input(tool: str, text: str) -> dict[str, Any]:
    """Return the input of a call. Raises click.BadParameter."""
    if tool == "bash" and not text.lstrip().startswith("{"):
        return {"command": text}
    try:
        call_input = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"it is not JSON: {error}", param_hint="INPUT") from None
    if not isinstance(call_input, dict):
        raise click.BadParameter('write an object, such as {"path": "README.md"}', param_hint="INPUT")
    return call_input


def _policy(file: TextIO) -> Any:
    """Return the policy in a file. Raises click.BadParameter."""
    try:
        return json.load(file)
    except (ValueError, RecursionError) as error:  # also a text that is not UTF-8
        raise click.BadParameter(f"{file.name} is not JSON: {error}", param_hint="--policy") from None


def _explained(explanation: dict[str, Any]) -> Iterator[str]:
    """Yield the verdict on a call, and its reasons."""
    yield f"{painted(explanation['effect'])}, by {visible(explanation['rule'])}"
    if explanation["covers"]:
        yield f"  covers    {visible(explanation['covers'])}"
    if explanation["doubt"]:
        yield f"  doubt     {visible(explanation['doubt'])}"
    if explanation["unknown_programs"]:
        yield f"  unknown   {visible(', '.join(explanation['unknown_programs']))}: no rule names these programs"
    for line in explanation["commands"]:
        for words in line["commands"]:
            yield f"  runs      {visible(' '.join(words))}"
        if line["doubt"]:
            yield f"  doubt     {visible(line['doubt'])}"
    for rule in explanation["rules"][1:]:
        yield f"  and       {rule['source']}: {rule['effect']} {visible(rule['covers'])}"
    for grant in explanation["grants"]:
        idle = f", allows nothing: {visible(grant['not_offered'])}" if grant["not_offered"] else ""
        yield f"  grant     {grant['id']}: {visible(grant['covers'])}{', decides' if grant['decides'] else ''}{idle}"


def _show_simulation(simulation: dict[str, Any]) -> None:
    """Print the sums of a simulation, and the calls that it found."""
    partly = "" if simulation["complete"] else ", not all that there were"
    click.echo(
        f"{number_with_noun(simulation['looked_at'], 'call')} since {since(simulation['since'])}{partly}: "
        f"{simulation['changed']} would have had another verdict."
    )
    if simulation["masked"]:
        click.echo(f"{number_with_noun(simulation['masked'], 'call')} judged with masked secrets: use a key with the scope reveal.")
    sides = [{"effect": effect, **simulation[effect]} for effect in EFFECTS if simulation[effect]["calls"]]
    columns = [
        Column("WOULD", lambda side: side["effect"], coloured=True),
        Column("CALLS", lambda side: side["calls"], to_the_right=True),
        Column(
            "THEN",
            lambda side: ", ".join(f"{count} {PAST_CALL.get(word, word)}" for word, count in side["then"].items()),
            gives_way=True,
        ),
    ]
    if not sides:
        return
    show_table(sides, False, columns)
    click.echo()
    examples = [{"effect": side["effect"], **example} for side in sides for example in side["examples"]]
    columns = [
        Column("WOULD", lambda call: call["effect"], coloured=True),
        Column("THEN", lambda call: PAST_CALL.get(call["then"], call["then"]), coloured=True),
        Column("TOOL", lambda call: call["tool"]),
        Column("INPUT", lambda call: "long" if call["input"] is None else _shortly(call["input"]), gives_way=True),
        Column("RULE", lambda call: call["rule"], gives_way=True),
        Column("CALLED", lambda call: since(call["created_at"])),
    ]
    show_table(examples, False, columns)


def _shortly(call_input: dict[str, Any]) -> str:
    """Return the command of a call, or its arguments as JSON."""
    return str(call_input["command"]) if call_input.keys() == {"command"} else json.dumps(call_input, ensure_ascii=False)
