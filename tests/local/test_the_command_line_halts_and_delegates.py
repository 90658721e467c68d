"""`assent halt` and `assent delegations` against the API as it is served."""

import json

import pytest
from doors.served import key
from local.conftest import Assent
from people import group, member
from rows.stage import Stage

from models.database.transactions import transaction
from models.people.delegation import Delegation


def test_a_workspace_is_halted_and_resumed(assent: Assent) -> None:
    assert assent("halt") == "The workspace is not halted.\n"
    assert assent("halt", "on", "--reason", "The refund tool pays twice.").endswith(": The refund tool pays twice.\n")
    status = json.loads(assent("halt", "--json"))
    assert (status["halted"], status["reason"]) == (True, "The refund tool pays twice.")
    assert assent("halt").startswith("The workspace is halted, just now, by ")
    assert "not halted. The last halt ended just now, by " in assent("halt", "off")
    assert "not halted" in assent("halt", "off"), "it is idempotent"
    assert json.loads(assent("halt", "on", "--json"))["reason"] is None


def test_a_halt_needs_the_right(assent: Assent, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_API_KEY", key(stage, "read"))
    assert "admin" in assent("halt", "on", code=1)
    assert assent("halt") == "The workspace is not halted.\n"


def test_delegations_are_given_listed_and_ended(assent: Assent, stage: Stage) -> None:
    finance = group(stage)
    anna, ben = member(stage, groups=[finance], email="anna@example.com"), member(stage, email="ben@example.com")
    header, line = assent("delegations", "give", anna.person_id, f"user:{ben.person_id}", "--hours", "2.5").splitlines()
    assert header.split() == ["ID", "FROM", "TO", "DECISIONS", "TERM"]
    whose = "  anna  ben  all "
    assert whose in line
    assert line.endswith("waits until anna accepts it at /inbox/account")
    with transaction(stage.workspace_id) as db:
        Delegation.find(db, line.split()[0], lock=True).accept(db, anna.principal)
    now_line = assent("delegations", "list").splitlines()[1]
    assert whose in now_line
    assert now_line.endswith("  2 hours left")
    of_group = ["--group", finance, "--starts-at", "2099-01-01T00:00:00Z", "--until", "2099-02-01T00:00:00Z"]
    assert "  finance    waits until" in assent("delegations", "give", anna.person_id, ben.person_id, *of_group)
    later, now = json.loads(assent("delegations", "list", "--json"))
    assert assent("delegations", "end", now["id"]) == f"{now['id']} is ended.\n"
    assert later["id"] in assent("delegations", "list")
    assert now["id"] not in assent("delegations", "list")
    assert "ended just now, by the key “test”" in assent("delegations", "list", "--all")


def test_a_delegation_needs_one_end_and_two_people(assent: Assent, stage: Stage) -> None:
    anna = member(stage)
    assert "either --hours or --until" in assent("delegations", "give", anna.person_id, anna.person_id, code=2)
    assert "is not an active member" in assent(
        "delegations", "give", anna.person_id, "user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0", "--hours", "1", code=1
    )
    assert "no person is named 'ben'" in assent("delegations", "give", anna.email, "ben", "--hours", "1", code=1)
    assert "is not a time" in assent("delegations", "give", anna.person_id, "user_1", "--hours", "1", "--starts-at", "soon", code=2)
    assert "None." in assent("delegations", "list")
