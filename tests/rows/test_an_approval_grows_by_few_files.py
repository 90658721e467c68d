"""A new kind of approval, and a new field of a decision, each take as few files as CONTRIBUTING.md says.

A copy of the code gets one of each, and another Python process makes decisions with them through the API and the inbox.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CODE = ("api", "deploy", "examples", "models", "workers")

KIND = {
    "models/session/approval/kinds/handover.py": """
from models.session.approval.kinds.kind import Kind, refuse_answers, refuse_outcome

def check(decision, _requests):
    refuse_answers(decision)
    refuse_outcome(decision)

KIND = Kind("handover", check, tag="handover", headline="May {agent} hand {tool} over?")
""",
    "models/flow/decide/kinds/handover.py": """
from models.flow.decide.kinds.denial import deny
from models.session.tool_call.result import Result

def carry_out(locked, approval, decision):
    if decision.result == "deny":
        return deny(locked, approval, decision)
    event_id = approval.close(locked, "answered", decision)
    approval.call(locked.db).settle(locked, "answered", Result.error("Handed over."))
    return event_id
""",
    "api/desk/card/kinds/handover.html": "{{ start('decision') }}<button name='do' value='allow'>Hand over</button></form>",
}
"""The files of a kind, by their paths. Besides these, docs/decisions.md describes it."""

FIELD = {
    "api/v1/approvals/decisions.py": (
        "    interrupt: bool | None = None\n",
        "    is_final: bool | None = None\n",
    ),
    "models/session/approval/decision.py": (
        "    interrupt: bool = False\n",
        "    is_final: bool = False\n",
    ),
    "models/flow/decide/kinds/denial.py": (
        '    event_id = approval.close(locked, "denied", decision)\n',
        """    if decision.is_final:
        call.settle(locked, "denied", Result.error("Never ask again."))
        return event_id
""",
    ),
    "api/v1/approvals/responses.py": (
        "    interrupt: bool | None = None\n",
        "    is_final: bool | None = None\n",
    ),
    "models/session/approval/confirmation.py": (
        "    interrupt: bool\n",
        "    is_final: bool\n",
    ),
}
"""The files of a field, each with a line of it and what follows that line. Besides these, docs/decisions.md describes it."""


def test_one_of_each_is_decided_by_http_and_on_its_card(clean_database: object, clean_redis: str, tmp_path: Path) -> None:
    assert len(KIND) + len(["docs/decisions.md"]) <= 4
    assert len(FIELD) + len(["docs/decisions.md"]) <= 6
    for folder in CODE:
        shutil.copytree(ROOT / folder, tmp_path / folder)  # with what Python has compiled of it
    for path, text in KIND.items():
        (tmp_path / path).write_text(text)
    for path, (line, addition) in FIELD.items():
        text = (tmp_path / path).read_text("utf-8")
        assert text.count(line) == 1, f"{path} has one line {line!r}"
        (tmp_path / path).write_text(text.replace(line, line + addition), "utf-8")
    run = "from rows.test_an_approval_grows_by_few_files import decide_one_of_each; decide_one_of_each()"
    path = os.pathsep.join([str(tmp_path), str(ROOT / "tests")])
    result = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, check=False)
    assert result.returncode == 0


def decide_one_of_each() -> None:
    """Decide an approval of the new kind, and one with the new field. Runs on the copy."""
    from doors.served import key
    from people import member
    from rows.stage import Stage
    from rows.voting import ask

    import models
    from api import create_app
    from models.database.transactions import transaction
    from models.session.tool_call.row import ToolCall

    assert ROOT not in Path(models.__path__[0]).parents, "this is the copy"
    stage = Stage()
    anna = member(stage)
    of_kind, with_field = ask(stage, stage.session()), ask(stage, stage.session())
    with transaction(stage.workspace_id) as db:
        db.write("UPDATE approval SET kind = 'handover' WHERE id = %(id)s", id=of_kind.id)
    client, headers = create_app().test_client(), {"x-api-key": key(stage)}
    client.set_cookie("assent-80", anna.secret)
    card = client.get(f"/inbox/approvals/{of_kind.id}", base_url="http://localhost:80")
    assert "May Agent hand bash over?" in card.text, card.text
    assert "Hand over" in card.text
    [row] = client.get("/v1/approvals?kind=handover", headers=headers).json["data"]
    assert row["id"] == of_kind.id
    listings = re.findall(r'\[[^\]]*"unknown_outcome"[^\]]*\]', client.get("/openapi.json").text)
    assert listings
    assert all('"handover"' in kinds for kinds in listings)

    address = "/v1/approvals/{}/decision"
    answer = client.post(address.format(of_kind.id), headers=headers, json={"result": "allow"})
    assert answer.json["status"] == "answered", answer.text
    assert stage.result(stage.get(ToolCall, of_kind.tool_call_id)) == "Handed over."

    answer = client.post(address.format(with_field.id), headers=headers, json={"result": "deny", "is_final": True})
    assert answer.json["decision"] == {"result": "deny", "is_final": True}, answer.text
    assert stage.result(stage.get(ToolCall, with_field.tool_call_id)) == "Never ask again."
    assert stage.events(with_field.session_id, "user.tool_confirmation")[0].body["is_final"] is True
