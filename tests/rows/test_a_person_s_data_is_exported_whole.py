"""A person's export has everything, however much it is and wherever it is, and nothing of others. Memory holds a page of it."""

import json
from typing import Any

import pytest
from own_database import Clock
from people import Somebody, group, member
from rows.archived import MONTH, archive, parts
from rows.stage import Stage, call, say
from rows.voting import vote

from models.database.transactions import transaction
from models.errors import NotFound
from models.flow.begin import sessions
from models.flow.begin.messages import receive
from models.operate.personal_data import export
from models.people.sign_in import SignIn
from models.session.archive import contents
from models.session.archive.part import ArchiveContent
from workers.sweeps import deleting


def exported(stage: Stage, who: Somebody) -> dict[str, Any]:
    data: dict[str, Any] = json.loads("".join(export.export(stage.workspace_id, who.person_id, by=stage.principal)))
    return data


def say_as(stage: Stage, who: Somebody, text: str) -> str:
    """Begin a session with a message of somebody. Returns its id, once it rests."""
    session = stage.session()
    stage.locked(session, lambda locked: receive(locked, [{"type": "user.message", "content": [say(text)]}]), who.principal)
    stage.reply(session, say("Yes."))
    return session


def messages(data: dict[str, Any]) -> list[Any]:
    return sorted(row["message"][0]["text"] for row in data["acts"] if "message" in row)


def test_pages_of_any_size_give_the_same_export(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    anna, ben = member(stage, "admin", groups=[group(stage), group(stage, "legal")]), member(stage, "admin")
    for number in range(4):
        say_as(stage, anna, f"From Anna {number}.")
        say_as(stage, ben, f"From Ben {number}.")
    session = stage.session()
    stage.message(session)
    stage.reply(session, call())
    vote(stage, anna, stage.approvals(session)[0], "deny", deny_message="Not today.")
    with transaction(stage.workspace_id) as db:
        for _ in range(3):
            SignIn.start(db, anna.principal, "link")
    whole = exported(stage, anna)
    for name, size in (("ROWS", 1), ("SCANNED", 2), ("ACTS", 1)):
        monkeypatch.setattr(export, name, size)
    paged = exported(stage, anna)
    whole.pop("exported_at"), paged.pop("exported_at")
    assert paged == whole
    assert messages(whole) == [f"From Anna {number}." for number in range(4)]
    assert (len(whole["sign_ins"]), len(whole["groups"])) == (4, 2)
    assert [row["decision"]["deny_message"] for row in whole["acts"] if "decision" in row] == ["Not today."]
    assert ben.email not in json.dumps(whole)
    assert ben.person_id not in json.dumps(whole)


def test_a_message_in_the_archive_is_exported_and_a_lost_part_is_named(stage: Stage, clock: Clock) -> None:
    anna = member(stage, "admin")
    session = say_as(stage, anna, "From Anna.")
    clock.advance(MONTH)
    assert archive(stage, session) == 1
    assert messages(exported(stage, anna)) == ["From Anna."]
    [part] = parts(stage, session)
    with transaction(stage.workspace_id) as db:
        db.delete(db.get_one(ArchiveContent, part.id))
    contents.forget()
    [act] = [row for row in exported(stage, anna)["acts"] if row["action"] == "message.received"]
    assert part.id in act["fault"]


def test_acts_in_deleted_sessions_stay_and_their_contents_are_gone(stage: Stage) -> None:
    anna = member(stage, "admin")
    session = say_as(stage, anna, "From Anna.")
    stage.locked(session, sessions.delete)
    deleting.remove_deleted()
    [act] = [row for row in exported(stage, anna)["acts"] if row["action"] == "message.received"]
    assert (act["session_id"], act.keys() & {"message", "fault"}) == (session, set())


def test_nobody_is_exported_to_another_workspace(stage: Stage) -> None:
    anna = member(stage)
    with pytest.raises(NotFound):
        exported(Stage(), anna)
