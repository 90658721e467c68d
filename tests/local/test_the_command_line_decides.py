"""`assent approvals` and `assent grants` against the API as it is served: every choice, every option, and the output of each."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from doors.served import Caller, good
from doors.waiting import agent_with, approval_of, asked, secretive
from local.conftest import Assent
from rows.stage import Stage, call

from models.database.transactions import transaction
from models.session.tool_call.input import CallInput
from models.session.tool_call.row import ToolCall


@pytest.fixture
def waiting(caller: Caller, stage: Stage) -> list[ToolCall]:
    """Two calls of one turn that wait. After one of them is decided, the session is idle and the other one waits."""
    return asked(caller, stage, call(command="git status"), call(command="git log"))


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes $EDITOR a program that runs `change`, a line of Python, on the file's `text`."""

    def make(change: str) -> None:
        program = tmp_path / "editor.py"
        program.write_text(
            f"import sys, pathlib\nfile = pathlib.Path(sys.argv[-1])\ntext = file.read_text()\n{change}\nfile.write_text(text)\n"
        )
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", f"{sys.executable} {program}")

    return make


def status(stage: Stage, tool_call: ToolCall) -> str:
    """The call's status now."""
    return stage.get(ToolCall, tool_call.id).status


@pytest.mark.parametrize(
    ("typed", "after", "text"),
    [
        ("1\n", "queued", "Decided."),
        ("4\n", "denied", "Decided."),
        ("5\nNot today.\n", "denied", "Decided."),
        ("6\n", "denied", "■ stopped"),
        ("8\n3 files\n", "answered", "result: "),
        ("9\n", "asked", "Run shell command: git log"),
        ("y\n9\n", "asked", "Error: "),
        ("a\n", "queued", "Decided."),
        ("d\n", "denied", "Decided."),
        ("s\n1\ny\n", "queued", "The grant covers every call of bash"),
        ("x\nj\n", "asked", 'exactly   {"command":"git status"}'),
        ("?\nj\n", "asked", "  8  answer in the tool's place"),
        ("j\nk\nd\n", "denied", "2 of 2  Run shell command: git log"),
    ],
)
def test_each_choice_does_what_it_says(
    assent: Assent, stage: Stage, waiting: list[ToolCall], typed: str, after: str, text: str
) -> None:
    shown = assent("approvals", typed=f"{typed}q\n")
    assert status(stage, waiting[0]) == after
    assert text in shown


def test_the_end_says_how_many_still_wait(assent: Assent, waiting: list[ToolCall]) -> None:
    assert assent("approvals", typed="j\nj\n").endswith("No others. 2 that were shown still wait.\n")
    assert assent("approvals", typed="j\nd\n").endswith("No others. 1 that was shown still waits.\n")


def test_the_keys_are_shown_also_beside_few_choices(assent: Assent, caller: Caller, stage: Stage) -> None:
    asked(caller, stage, agent=agent_with(caller, options=["session"]))
    assert "  s session  d deny  j next  k back  x exact  ? all  q quit\n" in assent("approvals", typed="q\n")


def test_only_the_answers_that_a_tool_offers_are_choices(assent: Assent, caller: Caller, stage: Stage) -> None:
    agent = agent_with(caller, options=["session", "answer"], widest_match="exact")
    tool_call, _ = asked(caller, stage, call(command="git status"), call(command="git log"), agent=agent)
    text = assent("approvals", typed="?\n3\n1\n2\ny\nq\n")
    assert "no option always: the approval settings of the tool leave it out" in text
    assert re.findall(r"^  (\w)  ", text.split("Your choice")[1], re.MULTILINE) == [*"245689", "q"]
    assert "The grant covers only this exact input of bash, for the rest of this session." in text
    assert status(stage, tool_call) == "queued"


def test_an_editor_that_fails_decides_nothing_and_asks_again(
    assent: Assent, stage: Stage, waiting: list[ToolCall], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "/nonexistent")
    output = assent("approvals", typed="e\nd\nq\n")
    assert "/nonexistent: Editing failed" in output
    assert "Nothing was decided." in output
    assert status(stage, waiting[0]) == "denied"


@pytest.mark.parametrize(
    ("choice", "typed", "match", "covers"),
    [
        ("2", "1\ny\n", "tool", "The grant covers every call of bash (beside a rule that denies or asks about commands: only"),
        ("3", "2\ny\n", "exact", "The grant covers only this exact input of bash, in every session of this agent."),
        ("2", "3\nbash(git *)\ny\n", "bash(git *)", "The grant covers every bash command that starts with `git`"),
    ],
)
def test_the_coverage_of_a_grant_is_shown_before_it_is_given(
    assent: Assent, caller: Caller, waiting: list[ToolCall], choice: str, typed: str, match: str, covers: str
) -> None:
    output = assent("approvals", typed=f"{choice}\n{typed}q\n")
    assert (
        output.index(covers)
        < output.index("Give this grant?")
        < output.index("Decided.")
        < output.index("This gives a grant, grnt_")
    )
    assert ("It also allows 1 other waiting call." in output) == (match != "exact")
    approval = approval_of(caller, waiting[0])
    assert approval["decision"]["match"] == match
    assert approval["grant"]["scope"] == {"2": "session", "3": "always"}[choice]


def test_a_grant_that_is_not_confirmed_is_not_given(assent: Assent, caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    output = assent("approvals", typed="2\n1\nn\n2\n3\nread(src/**)\nq\n")
    assert "match: 'read(src/**)' is about read" in output
    assert status(stage, waiting[0]) == "asked"
    assert good(caller.get("/v1/grants"))["data"] == []


def test_an_input_is_edited_in_the_editor(
    assent: Assent, stage: Stage, waiting: list[ToolCall], editor: Callable[[str], None]
) -> None:
    editor("text = text.replace('git status', 'git diff')")
    output = assent("approvals", typed="7\ny\nq\n")
    assert output.index('input instead  {"command":"git diff"}') < output.index("Run this instead?") < output.index("Decided.")
    assert stage.get(CallInput, waiting[0].id).input == {"command": "git diff"}


def test_an_edit_keeps_what_is_hidden(assent: Assent, caller: Caller, stage: Stage, editor: Callable[[str], None]) -> None:
    tool_call = secretive(caller, stage)
    editor("text = text.replace('5', '6')")
    assert "4711" not in assent("approvals", "decide", approval_of(caller, tool_call)["id"], "--allow", "--edit")
    assert stage.get(CallInput, tool_call.id).input == {"amount": 6, "pin": "4711"}


@pytest.mark.parametrize(
    ("change", "typed", "text"),
    [
        ("pass", "7\nq\n", "nothing was decided"),
        ("text = '{'", "7\nn\nq\n", "It is not JSON"),
        ("text = '[]'", "7\nn\nq\n", "It is not a JSON object"),
        ("text = '{\"timeout\": NaN}'", "7\nn\nq\n", "It is not JSON that can be sent"),
        ("text = '{\"timeout\": 1152921504606846976}'", "7\nn\nq\n", "It is not JSON that can be sent"),
        ("text = '{\"nosuch\": 1}'", "7\ny\nq\n", "Not decided: updated_input: "),
        ("text = text.replace('git status', 'git diff')", "7\nn\nq\n", "Run this instead?"),
    ],
)
def test_an_edit_that_is_unchanged_wrong_or_not_confirmed_decides_nothing(
    assent: Assent, stage: Stage, waiting: list[ToolCall], editor: Callable[[str], None], change: str, typed: str, text: str
) -> None:
    editor(change)
    assert text in assent("approvals", typed=typed)
    assert status(stage, waiting[0]) == "asked"


def test_the_card_names_the_agent_the_session_and_its_place(assent: Assent, caller: Caller, stage: Stage) -> None:
    agent = caller.agent(name="Captain", tools=[{"type": "agent_toolset_20260401"}])
    asked(caller, stage, call(command="git tag v4\ngit push"), agent=agent, title="Release 4")
    shown = assent("approvals", typed="q\n")
    assert shown.startswith("\n1 of 1  Run shell command: ")
    assert "  agent     Captain\n  tool      bash\n  command   2 lines\n  │ git tag v4\n  │ git push\n" in shown
    assert "  session   Release 4 · sesn_" in shown


def test_the_list_is_for_people_and_for_programs(assent: Assent, caller: Caller, waiting: list[ToolCall]) -> None:
    first, second = (approval_of(caller, tool_call) for tool_call in waiting)
    assert json.loads(assent("approvals", "list", "--json")) == [first, second]
    assert json.loads(assent("approvals", "list", "--json", "--limit", "1")) == [first]
    assert json.loads(assent("approvals", "list", "--json", "--status", "denied")) == []
    assert json.loads(assent("approvals", "list", "--json", "--status", "all", "--tool", "read")) == []
    header, line, _ = assent("approvals", "list").splitlines()
    assert header.split() == ["ID", "STATUS", "QUESTION", "ASKED", "DEADLINE"]
    assert line.startswith(f"{first['id']}  waiting  ")
    assert "Run shell command: git status" in line
    assert assent("approvals", "list", "--status", "expired") == "None.\n"


def test_an_approval_is_shown_and_its_secrets_only_on_demand(assent: Assent, caller: Caller, stage: Stage) -> None:
    approval = approval_of(caller, secretive(caller, stage))
    output = assent("approvals", "show", approval["id"])
    assert '{"amount":5,"pin":"«masked»"}' in output
    assert "4711" not in output + assent("approvals", "show", approval["id"], "--json")
    assert '{"amount":5,"pin":"4711"}' in assent("approvals", "show", approval["id"], "--reveal")


DECISIONS: list[tuple[list[str], dict[str, Any], str]] = [
    (["--allow"], {"result": "allow"}, "✓ Allowed by the key “"),
    (["--deny", "--message", "No."], {"result": "deny", "deny_message": "No."}, "message        No."),
    (["--deny", "--interrupt"], {"result": "deny", "interrupt": True}, "✗ Denied, and the run ended, by "),
    (
        ["--allow", "--scope", "session", "--match", "exact", "--max-uses", "2", "--expires-in", "60"],
        {"result": "allow", "scope": "session", "match": "exact", "max_uses": 2, "expires_in_seconds": 60},
        "only this exact input of bash, in session sesn_",
    ),
    (
        ["--allow", "--respond", "3"],
        {"result": "allow", "respond": [{"type": "text", "text": "3"}]},
        "✓ Answered in the tool's place by ",
    ),
]


@pytest.mark.parametrize(("words", "decision", "text"), DECISIONS)
def test_an_approval_is_decided_without_a_question(
    assent: Assent, caller: Caller, waiting: list[ToolCall], words: list[str], decision: dict[str, Any], text: str
) -> None:
    approval_id = approval_of(caller, waiting[0])["id"]
    assert text in assent("approvals", "decide", approval_id, *words)
    assert approval_of(caller, waiting[0])["decision"] == decision
    assert json.loads(assent("approvals", "decide", approval_id, *words, "--json"))["decision"] == decision


def test_an_input_is_taken_from_a_file(assent: Assent, caller: Caller, stage: Stage, waiting: list[ToolCall]) -> None:
    words = ("approvals", "decide", approval_of(caller, waiting[0])["id"], "--allow", "--input", "-")
    assert assent(*words, typed="{", code=1).startswith("Error: <stdin> is not JSON")
    assert assent(*words, typed="[]", code=1).startswith("Error: updated_input: ")
    assert 'input instead  {"command":"ls"}' in assent(*words, typed='{"command": "ls"}')
    assert stage.get(CallInput, waiting[0].id).input == {"command": "ls"}


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["decide", "appr_none", "--allow"], 1, "Error: approval 'appr_none' was not found in this workspace.\n"),
        (["decide", "../../x", "--allow"], 1, "Error: "),
        (["decide", "ID"], 2, "use --allow or --deny"),
        (["decide", "ID", "--deny", "--scope", "session"], 1, "Error: scope: "),
        (["decide", "ID", "--allow", "--match", "exact"], 1, "Error: match: "),
        (["decide", "ID", "--allow", "--sha256", "0" * 64], 1, "Error: expected_input_sha256 is not the hash"),
        (["decide", "ID", "--allow", "--result", "x"], 2, "--result goes with --outcome happened"),
        (["decide", "ID", "--outcome", "rerun"], 1, "Error: outcome: "),
        (["show", "appr_none"], 1, "Error: approval 'appr_none' was not found in this workspace.\n"),
    ],
)
def test_an_impossible_command_gets_one_clear_line(
    assent: Assent, caller: Caller, stage: Stage, waiting: list[ToolCall], words: list[str], code: int, text: str
) -> None:
    approval_id = approval_of(caller, waiting[0])["id"]
    output = assent("approvals", *(approval_id if word == "ID" else word for word in words), code=code)
    assert text in output
    assert code == 2 or len(output.splitlines()) == 1
    assert status(stage, waiting[0]) == "asked"


def test_the_api_s_url_may_stand_before_or_behind_the_subcommand(
    assent: Assent, api: str, waiting: list[ToolCall], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSENT_URL", "http://127.0.0.1:9")
    assert "the API does not respond at http://127.0.0.1:9 " in assent("approvals", "list", code=1)
    assert "git status" in assent("approvals", "--url", api, "list")
    assert "git status" in assent("approvals", "list", "--url", api)


def test_grants_are_listed_and_revoked(assent: Assent, caller: Caller, waiting: list[ToolCall]) -> None:
    assert assent("grants", "list") == "None.\n"
    assent("approvals", "decide", approval_of(caller, waiting[0])["id"], "--allow", "--scope", "always", "--max-uses", "3")
    [grant] = json.loads(assent("grants", "list", "--json"))
    assert grant == good(caller.get(f"/v1/grants/{grant['id']}"))
    line = assent("grants", "list").splitlines()[1]
    assert line.startswith(f"{grant['id']}  live   every call of bash (")
    assert ")  every session of Agent  0 of 3  " in line
    assert assent("grants", "list", "--tool", "read") == "None.\n"
    for _ in range(2):
        assert assent("grants", "revoke", grant["id"]) == f"{grant['id']} is revoked.\n"
    assert assent("grants", "list") == "None.\n"
    assert "by the key “test”" in assent("grants", "list", "--all")
    assert "Error: grant 'grnt_none' was not found" in assent("grants", "revoke", "grnt_none", code=1)


def test_watch_waits_for_new_approvals_until_ctrl_c(caller: Caller, stage: Stage) -> None:
    words = [sys.executable, "-u", "-m", "api.cli.main", "approvals", "watch"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=os.environ, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True) as watch:
        try:
            assert watch.stdin
            for command in ("git status", "git log"):
                # The second approval comes while the command waits.
                tool_call, other = asked(caller, stage, call(command=command), call(command="true"))
                _read_until(watch, "Your choice")
                watch.stdin.write("4\n9\n")
                watch.stdin.flush()
                assert "Decided." in _read_until(watch, "Your choice")
                assert (status(stage, tool_call), status(stage, other)) == ("denied", "asked")
            watch.send_signal(signal.SIGINT)
            assert watch.wait(20) == 0
        finally:
            watch.kill()


def _read_until(process: "subprocess.Popen[str]", words: str) -> str:
    """The output up to these words, which may be on a line that has no end yet."""
    assert process.stdout
    output = ""
    while words not in output:
        character = process.stdout.read(1)
        assert character, output
        output += character
    return output


def test_times_are_relative(assent: Assent, waiting: list[ToolCall], stage: Stage) -> None:
    with transaction(stage.workspace_id) as db:
        times = "created_at = now() - interval '31 minutes 10 seconds', expires_at = now() + interval '23 hours 10 minutes'"
        db.write(f"UPDATE approval SET {times} WHERE tool_call_id = %(id)s", id=waiting[0].id)
    _, line, other = assent("approvals", "list").splitlines()
    assert line.endswith("31 minutes ago  23 hours left")
    assert "just now  " in other
    assert "31 minutes ago" in assent("approvals", typed="q\n")
