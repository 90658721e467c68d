"""The page of the audit says each act in a sentence, with names, and lists the acts about one thing."""

import re
from html import unescape
from pathlib import Path

import people
from inbox.waiting import asked
from rows.stage import Stage, call

from api.desk.audit import sentences
from models.database.transactions import transaction
from models.workspace.api_key import ApiKey, NewKey

_TAG, _SPACE = re.compile(r"<details.*?</details>|<[^>]*>", re.DOTALL), re.compile(r"\s+")
_NOTED = re.compile(r"(?:\.note|\brecord|\.begin)\(\s*[^\"()]*?\"([a-z_]+\.[a-z_]+)\"")
MODELS = Path(sentences.__file__).parents[3] / "models"


def lines(page: str) -> list[str]:
    """The acts of the page, newest first, without their details and times."""
    rows = re.findall(r"<li class=\"plain\"><div>(.*?)</div><div class=\"side", page, re.DOTALL)
    return [_SPACE.sub(" ", unescape(_TAG.sub("", row))).strip() for row in rows]


def test_every_act_that_the_code_writes_has_a_sentence() -> None:
    actions = {action for file in MODELS.rglob("*.py") for action in _NOTED.findall(file.read_text("utf-8"))}
    assert len(actions) > 50
    assert actions - set(sentences.ACTS) == set()


def test_an_act_names_who_did_it_and_to_what(stage: Stage, api: str) -> None:
    anna = people.member(stage, "admin", email="anna@example.com")
    [approval] = asked(stage, call(command="rm -rf build"))
    with anna.client(api) as client:
        decision = {"result": "deny", "deny_message": "Not today."}
        assert client.post(f"/v1/approvals/{approval.id}/decision", json=decision).status_code == 200
        with transaction(stage.workspace_id) as db:
            ApiKey.create(db, NewKey("Backend", scopes=frozenset({"read"})), by=anna.principal)
        everything = lines(client.get("/inbox/audit").text)
        assert everything[0] == "anna created the key Backend"
        assert "anna denied Run shell command: rm -rf build" in everything
        assert lines(client.get("/inbox/audit?about=decisions").text)[0] == "anna denied Run shell command: rm -rf build"
        assert lines(client.get("/inbox/audit?action=api_key.created").text) == ["anna created the key Backend"]
        of_anna = lines(client.get(f"/inbox/audit?principal=user:{anna.person_id}&about=decisions").text)
        assert of_anna == [f"anna {did} Run shell command: rm -rf build" for did in ("denied", "voted on")]
        assert lines(client.get("/inbox/audit?about=nonsense").text) == everything
