"""In a terminal one sees what runs, begins sessions, follows them and stops them, with names instead of ids."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from doors.served import Caller
from doors.waiting import approval_of, asked, good
from local.conftest import Assent
from local.terminal import terminal
from rows.stage import Stage, call, say

from api.cli.main import main


@pytest.fixture
def janitor(caller: Caller) -> str:
    """The id of an agent."""
    return str(caller.agent(name="Janitor", tools=[{"type": "agent_toolset_20260401"}])["id"])


def test_the_command_alone_is_the_status(assent: Assent, caller: Caller, stage: Stage, api: str) -> None:
    assert assent().splitlines()[0] == f"up · 0 wait · 0 failed · {api}"
    asked(caller, stage)
    assert assent().splitlines()[:2] == [
        f"up · 1 waits · 0 failed · {api}",
        "  assent approvals   decide what waits",
    ]
    assert f"\n  assent approvals --url {api}   decide what waits\n" in assent("status", "--url", api)
    summary = json.loads(assent("status", "--json"))
    assert (summary["status"], summary["waiting_approvals"], summary["sessions"]) == ("up", 1, 1)
    good(caller.post("/v1/halt", json={"reason": "A look."}))
    assert assent("status").splitlines()[1:3] == ["  halted: A look.", "  assent halt off    lift the halt"]


def test_a_server_that_does_not_respond_is_down(assent: Assent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASSENT_URL", "http://127.0.0.1:9")
    assert assent(code=1).startswith("down · the API does not respond at http://127.0.0.1:9 ")
    assert json.loads(assent("status", "--json", code=1))["status"] == "down"
    monkeypatch.delenv("ASSENT_URL")
    assert f"start it with `assent up --data-dir {tmp_path}`" in assent("status", "--data-dir", str(tmp_path), code=1)
    monkeypatch.chdir(tmp_path)
    assert "start it with `assent up`" in assent("status", code=1)


def test_the_next_command_is_one_that_the_shell_finds(assent: Assent, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    beside = Path(sys.executable).with_name("assent")
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.chdir(tmp_path)
    assert f"  {beside} --help " in assent()
    assert f"Did you mean `{beside} approvals`" in assent("aprovals", code=2)
    monkeypatch.chdir(beside.parents[1])
    assert "  bin/assent --help " in assent()
    monkeypatch.delenv("ASSENT_URL")
    assert f"start it with `bin/assent up --data-dir {tmp_path}`" in assent("sessions", "list", "--data-dir", str(tmp_path), code=1)


def test_a_session_is_begun_found_written_to_and_stopped(assent: Assent, stage: Stage, janitor: str) -> None:
    words = ("--title", "Sweep", "--json")
    session = json.loads(assent("sessions", "start", "Janitor", "Sweep the floor.", *words))
    assert (session["agent"]["id"], session["title"]) == (janitor, "Sweep")
    header, row = assent("sessions", "list").splitlines()
    assert header.split() == ["ID", "STATE", "TITLE", "AGENT", "WAITS", "FOR", "COST", "ACTIVE"]
    assert row.split()[:4] == [session["id"], "working", "Sweep", "Janitor"]
    stage.reply(session["id"], call(command="ls -l"))
    [_, row] = assent("sessions", "list", "--waiting", "--agent", "Janitor").splitlines()
    assert "waiting  Sweep  Janitor  Run shell command: ls -l" in row
    shown = assent("sessions", "show", "Sweep")
    assert f"  id        {session['id']}\n  state     ○ waiting\n" in shown
    assert "person: Sweep the floor.\n" in shown
    assert 'agent wants bash {"command":"ls -l"}\n' in shown
    assert assent("sessions", "stop", session["id"][-8:].lower()) == f"{session['id']} stops.\n"
    assert assent("sessions", "say", "Sweep", "Go on.") == f"Sent to {session['id']}.\n"
    assert "Go on." in assent("sessions", "show", "Sweep")
    assert [row["id"] for row in json.loads(assent("sessions", "list", "--json"))] == [session["id"]]


def test_a_key_with_a_foreign_character_is_refused_in_a_sentence(assent: Assent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_API_KEY", "\u043a\u043b\u044e\u0447")
    assert "ASSENT_API_KEY has a character that no key has" in assent("sessions", "list", code=1)


def test_a_file_that_is_no_text_is_refused_in_a_sentence(assent: Assent, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\xff\xfe")
    assert "Error: a file or the standard input is not UTF-8: " in assent("policy", "judge", str(tmp_path / "file"), code=1)
    assert "Error: a file or the standard input is not UTF-8: " in assent(
        "environment", "of", "web", str(tmp_path / "file"), code=1
    )


def test_a_session_is_erased_once_it_rests(assent: Assent, janitor: str) -> None:
    session = json.loads(assent("sessions", "start", janitor, "Sweep the floor.", "--title", "Sweep", "--json"))
    words = ("sessions", "erase", "Sweep", "--reason", "Asked.")
    assert "is running: send user.interrupt" in assent(*words, "--yes", code=1)
    assent("sessions", "stop", "Sweep")
    assert "Aborted" in assent(*words, code=1)
    assert assent(*words, "--yes") == f"{session['id']} is erased.\n"
    assert json.loads(assent("sessions", "list", "--json")) == []


def test_a_session_gets_a_budget_in_dollars(assent: Assent, janitor: str) -> None:
    session = json.loads(assent("sessions", "start", janitor, "Sweep.", "--budget", "2.50", "--json"))
    assert session["budget"]["max_list_cost"] == {"amount": "250", "currency": "USD"}
    assert "  cost      $0.00 of $2.50, 0 requests" in assent("sessions", "show", session["id"])


def test_watching_shows_the_past_then_the_news_until_the_session_rests(assent: Assent, stage: Stage, janitor: str) -> None:
    session = json.loads(assent("sessions", "start", janitor, "Hello.", "--json"))
    with terminal("sessions", "watch", session["id"]) as screen, ThreadPoolExecutor() as pool:
        screen.wait_for("person: Hello.")
        pool.submit(stage.reply, session["id"], say("Good morning.")).result()
        screen.wait_for("agent: Good morning.")
        screen.wait_for("✓ done")
    assert assent("sessions", "watch", session["id"]).count("Good morning.") == 1
    assert [json.loads(line)["type"] for line in assent("sessions", "watch", session["id"], "--json").splitlines()][-1] == (
        "session.status_idle"
    )


def test_a_run_that_failed_says_so(assent: Assent, stage: Stage, caller: Caller, janitor: str) -> None:
    session = json.loads(assent("sessions", "start", janitor, "Hello.", "--json"))
    stage.reply(session["id"], say("No."), stop_reason="refusal")
    assert " refused " in assent("sessions", "list")
    assert "· 1 failed ·" in assent()


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["sessions", "show", "nothing"], 1, "no session is named 'nothing': give the id, sesn_..., or its last 8 characters"),
        (["sessions", "show", "sesn_none"], 1, "Error: session 'sesn_none' was not found in this workspace.\n"),
        (["sessions", "start", "Nobody", "Hi."], 1, "no agent is named 'Nobody'"),
        (["sessions", "start", "Janitor", "Hi.", "--budget", "0.001"], 2, "must be dollars, with at most two decimals"),
        (["aprovals"], 2, "No such command 'aprovals'. Did you mean `assent approvals`"),
        (["sessions", "lst"], 2, "No such command 'lst'. Did you mean 'list'?"),
        (["policy", "try", "bash", "ls"], 2, "name either --agent or --session."),
        (["policy", "try", "read", "x", "--agent", "Janitor"], 2, "INPUT: it is not JSON"),
        (["policy", "try", "bash", '{"command": NaN}', "--agent", "Janitor"], 1, "the request cannot be sent: "),
        (["policy", "try", "read", "[" * 9000, "--agent", "Janitor"], 2, "INPUT: it is not JSON"),
        (["policy", "simulate", "deny", "bash(ls)", "--days", "nan"], 2, "nan is not a number."),
        (["sessions", "start", "Janitor", "\udcff"], 1, "the request cannot be sent: "),
        (["delegations", "give", "user_1", "user_2", "--hours", "1e300"], 2, "is not in the range 0<x<=8784"),
        (["open", "nothing"], 1, "nothing: neither a page (inbox, "),
    ],
)
def test_a_mistake_is_one_sentence_with_its_remedy(assent: Assent, janitor: str, words: list[str], code: int, text: str) -> None:
    assert text in assent(*words, code=code)


def test_agents_are_listed_with_their_tools_and_policies(assent: Assent, caller: Caller) -> None:
    rules = [{"effect": "deny", "match": "bash(rm *)", "reason": "Never."}]
    config = {"name": "bash", "permission_policy": {"type": "auto", "rules": rules, "default": "ask"}}
    agent = caller.agent(name="Sweeper", tools=[{"type": "agent_toolset_20260401", "configs": [config]}])
    _, row = assent("agents", "list").splitlines()
    assert row.startswith(f"{agent['id']}  Sweeper  ")
    shown = assent("agents", "show", "Sweeper")
    assert "  tool      bash  1 rule, else ask\n            deny bash(rm *)  (Never.)\n" in shown
    caller.post(f"/v1/agents/{agent['id']}", json={"name": "Sweeper 2"})
    assert [line.split()[0] for line in assent("agents", "versions", agent["id"]).splitlines()] == ["V", "2", "1"]
    assert json.loads(assent("agents", "show", "Sweeper 2", "--version", "1", "--json"))["name"] == "Sweeper"


def test_a_call_is_tried_and_rules_and_policies_are_simulated(assent: Assent, caller: Caller, stage: Stage, tmp_path: Path) -> None:
    [tool_call] = asked(caller, stage, call(command="git status"))
    agent_id = good(caller.get(f"/v1/sessions/{tool_call.session_id}"))["agent"]["id"]
    verdict = assent("policy", "try", "bash", "git status && ls", "--agent", agent_id)
    assert verdict.startswith("ask, by ")
    assert "  runs      git status\n  runs      ls\n" in verdict
    same = ("policy", "try", "bash", '{"command": "ls"}', "--session", tool_call.session_id, "--json")
    assert json.loads(assent(*same))["effect"] == "ask"
    simulation = assent("policy", "simulate", "deny", "bash(git *)", "--agent", agent_id)
    assert "1 call since 7 days ago: 1 would have had another verdict.\n" in simulation
    assert "deny   waiting  bash  git status" in simulation
    good(caller.post(f"/v1/approvals/{approval_of(caller, tool_call)['id']}/decision", json={"result": "allow"}))
    decided = assent("policy", "simulate", "deny", "bash(git *)", "--agent", agent_id)
    assert "deny       1  1 allowed by a person" in decided
    assert "deny   allowed by a person  bash  git status" in decided
    assert json.loads(assent("policy", "simulate", "deny", "bash(git *)", "--json"))["changed"] == 1
    file = tmp_path / "policy.json"
    file.write_text(json.dumps({"type": "always_deny"}))
    of_policy = json.loads(assent("policy", "simulate", "--policy", str(file), "--agent", agent_id, "--json"))
    assert of_policy["changed"] == of_policy["looked_at"] == 1
    file.write_text("{")
    assert "is not JSON" in assent("policy", "simulate", "--policy", str(file), code=2)
    assert "give a rule" in assent("policy", "simulate", code=2)


def test_rules_are_suggested_with_what_they_would_have_saved(assent: Assent, caller: Caller, stage: Stage) -> None:
    assert assent("policy", "suggest") == "None.\nBy 0 decided calls, the newest. No decision is contradicted.\n"
    asked(caller, stage, *(call(command=f"npm test -- {number}") for number in range(5)))
    for approval in good(caller.get("/v1/approvals"))["data"]:
        good(caller.post(f"/v1/approvals/{approval['id']}/decision", json={"result": "allow"}))
    header, row, *rest = assent("policy", "suggest").splitlines()
    assert (header.split(), row.split("  ")[0]) == (["RULE", "CALLS", "AGENT", "ANSWERS", "LAST"], "allow")
    assert "bash(npm test *)" in row
    assert "5 of 5" in row
    assert rest[0] == "By 5 decided calls, the newest. No decision is contradicted."
    [agent_id] = {one["agent_id"] for one in json.loads(assent("policy", "suggest", "--json"))["data"]}
    assert assent("policy", "suggest", "--agent", agent_id).splitlines()[1] == row


def test_the_page_of_a_row_is_one_word_away(assent: Assent, caller: Caller, stage: Stage, api: str) -> None:
    [tool_call] = asked(caller, stage)
    [approval] = good(caller.get("/v1/approvals"))["data"]
    session_id = tool_call.session_id
    assert assent("open") == f"{api}/inbox\n"
    assert assent("open", session_id) == assent("open", session_id[-8:]) == f"{api}/inbox/sessions/{session_id}\n"
    assert assent("open", approval["id"][-8:]) == f"{api}/inbox/approvals/{approval['id']}\n"


def test_a_terminal_gets_tables_that_fit_and_ids_that_can_be_typed(caller: Caller, stage: Stage) -> None:
    [tool_call] = asked(caller, stage, call(command="echo " + "long " * 60))
    with terminal("sessions", "list", columns=80) as screen:
        screen.wait_for("ACTIVE\n")
        row = screen.wait_for("\n")
    assert row.startswith(f"{tool_call.session_id[-8:]}  ○ waiting  ")
    assert "echo l…" in row
    assert max(map(len, screen.text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("shell", "text"), [("bash", "complete -o nosort"), ("zsh", "#compdef assent"), ("fish", "complete --no-files")]
)
def test_each_shell_gets_its_script_for_completion(shell: str, text: str) -> None:
    assert text in CliRunner().invoke(main, ["completion", shell]).output


def test_ctrl_c_ends_a_command_without_a_word(assent: Assent, janitor: str) -> None:
    session = json.loads(assent("sessions", "start", janitor, "Hello.", "--json"))["id"]
    words = [sys.executable, "-u", "-m", "api.cli.main", "sessions", "watch", session]
    with subprocess.Popen(words, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as watch:
        try:
            assert watch.stdout
            watch.stdout.readline()
            watch.send_signal(signal.SIGINT)
            assert watch.communicate(timeout=20)[0].strip() == ""
            assert watch.returncode == 130
        finally:
            watch.kill()
