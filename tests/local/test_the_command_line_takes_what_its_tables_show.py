"""Where a command takes an id, it takes the last characters of the id, by which a table on a terminal names the row."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from doors.served import Caller, good
from doors.waiting import approval_of, asked
from local.conftest import Assent
from local.terminal import terminal
from people import member
from rows.stage import Stage
from rows.stage import call as bash

from api.cli.tables import columns_of
from models.database import clock
from models.database.transactions import transaction
from models.people.group import Group


def short(row: dict[str, Any]) -> str:
    """The id as a table shows it."""
    return str(row["id"])[-8:]


def made(assent: Assent, *words: str) -> dict[str, Any]:
    """The row that a command makes."""
    row: dict[str, Any] = json.loads(assent(*words, "--json"))
    return row


def test_each_row_that_a_list_shows_is_found_by_its_short_id(
    assent: Assent, caller: Caller, stage: Stage, subtests: pytest.Subtests
) -> None:
    agent = caller.agent(name="Sweeper")
    group = made(assent, "groups", "create", "finance")
    with subtests.test("key"):
        key = made(assent, "keys", "create", "ci")
        assert assent("keys", "revoke", short(key)) == f"{key['id']} is revoked.\n"
    with subtests.test("webhook"):
        endpoint = made(assent, "webhooks", "create", "https://example.com/hook")
        assert json.loads(assent("webhooks", "deliveries", short(endpoint), "--json")) == []
    with subtests.test("delivery"):
        delivery = made(assent, "webhooks", "test", short(endpoint))
        assert "this delivery is queued" in assent("webhooks", "redeliver", short(endpoint), short(delivery), code=1)
    with subtests.test("channel"):
        channel = made(assent, "channels", "add", "slack", "C012AB3CD")
        assert assent("channels", "remove", short(channel)) == f"{channel['id']} is deleted.\n"
    with subtests.test("spend limit"):
        limit = made(assent, "limits", "create", "250", "--agent", short(agent))
        assert assent("limits", "delete", short(limit)) == f"{limit['id']} is deleted.\n"
    with subtests.test("legal hold, also once it is released"):
        hold = made(assent, "holds", "set", "--reason", "Case 1.")
        assert made(assent, "holds", "release", short(hold)) == made(assent, "holds", "release", short(hold))
    with subtests.test("person, group and delegation"):
        anna, ben = (member(stage, email=f"{name}@example.com").person_id for name in ("anna", "ben"))
        assert assent("groups", "add", short(group), anna[-8:]) == f"{anna} is in {group['id']}.\n"
        delegation = made(assent, "delegations", "give", anna[-8:], ben[-8:], "--hours", "1", "--group", short(group))
        assert (delegation["from"], delegation["group"]) == (f"user:{anna}", f"group:{group['id']}")
        assert assent("delegations", "end", short(delegation)) == f"{delegation['id']} is ended.\n"
    with subtests.test("grant and session"):
        [call] = asked(caller, stage)
        decision = {"result": "allow", "scope": "session"}
        [grant] = good(caller.post(f"/v1/approvals/{approval_of(caller, call)['id']}/decision", json=decision))["grants"]
        [row] = json.loads(assent("grants", "list", "--session", call.session_id[-8:], "--json"))
        assert assent("grants", "revoke", short(row)) == f"{grant['id']} is revoked.\n"


def test_a_table_on_a_terminal_shows_the_end_of_each_id(assent: Assent, stage: Stage) -> None:
    group = made(assent, "groups", "create", "finance")
    with terminal("groups", "list") as screen:
        screen.wait_for("MEMBERS")
        assert screen.wait_for("finance") == f"\n{short(group)}  "


def test_a_short_id_that_several_rows_have_is_refused_with_their_ids(assent: Assent, stage: Stage) -> None:
    ids = [f"grp_01K9ZQ3T5VJ8W2X4Y{middle}ABCDEFGH" for middle in "01"]
    with transaction(stage.workspace_id) as db:
        same = {"workspace_id": stage.workspace_id, "source": "direct", "created_at": clock.now(db), "updated_at": clock.now(db)}
        for group_id in ids:
            db.insert(Group(id=group_id, name=group_id[-9:], **same))
    refusal = assent("groups", "delete", "abcdefgh", code=1)
    assert "several groups are named 'abcdefgh'" in refusal
    assert all(group_id in refusal for group_id in ids)
    assert assent("groups", "delete", "1abcdefgh") == f"{ids[1]} is deleted.\n"


@pytest.mark.parametrize("columns", [40, 80])
def test_a_table_of_long_texts_fits_a_narrow_terminal(assent: Assent, caller: Caller, stage: Stage, columns: int) -> None:
    agent = caller.agent(name="Sweeper of floors " * 5, tools=[{"type": "agent_toolset_20260401"}])
    session = caller.session(agent, title="\u6f22\u5b57 and \x1b[2J " * 9)
    caller.say(session["id"], "Sweep.")
    stage.reply(session["id"], bash(command="echo " + "x" * 99))
    for noun in ("agents", "sessions", "approvals", "keys"):
        with terminal(noun, "list", columns=columns) as screen:
            screen.wait_for("ID ")
            screen.wait_for("\n")
            assert columns_of(screen.wait_for("\n")) <= columns, noun


def test_closed_streams_and_terminals_without_a_character_end_no_command(caller: Caller) -> None:
    caller.agent(name="\u6f22")

    def run(words: str, **more: str) -> tuple[int, str]:
        command = ["sh", "-c", f"{sys.executable} -c 'from api.cli.main import main; main()' {words}"]
        program = subprocess.run(command, check=False, capture_output=True, text=True, env=os.environ | more)
        return program.returncode, program.stdout + program.stderr

    assert run("agents list >&-") == (0, "")
    assert run("agents list 2>&-")[0] == 0
    code, text = run("agents list", PYTHONIOENCODING="latin-1")
    assert (code, "\\u6f22" in text) == (0, True)
    assert run("approvals <&-") == (0, "Nothing waits for a decision.\n")


def test_an_empty_text_names_no_row(assent: Assent) -> None:
    assert "no session is named ''" in assent("grants", "list", "--session", "", code=1)
    assert "no channel is named ''" in assent("channels", "remove", "", code=1)
