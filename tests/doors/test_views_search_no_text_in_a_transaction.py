"""Every view shows what was masked when it was stored. No view, and no response to a write, looks for secrets in a transaction."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from people import member
from rows.stage import Stage, call
from werkzeug.test import Client

from api.door.browser import token_of
from models.database import transactions
from models.database.transactions import transaction
from models.notices.link import issue
from models.pure.json import fitting
from models.pure.masking import echoes, values

SECRET = "hunter2hunter2"
OTHER = "hunter3hunter3"
COMMAND = f"deploy --password={SECRET}"


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether a transaction was open, for each text or value that was searched for secrets, and each check against a schema."""
    open_transactions: list[bool] = []

    def observed(function: Callable[..., Any]) -> Callable[..., Any]:
        def search(*arguments: Any, **more: Any) -> Any:
            open_transactions.append(transactions.is_open())
            return function(*arguments, **more)

        return search

    for module, name in ((values, "_Mask"), (echoes, "_compile"), (fitting, "errors")):
        monkeypatch.setattr(module, name, observed(getattr(module, name)))
    return open_transactions


@pytest.fixture
def browser(flask_app: Flask, stage: Stage) -> Client:
    """A client of this process's API, in which an admin is signed in."""
    client = flask_app.test_client()
    admin = member(stage, "admin")
    [(name, secret)] = admin.cookie("http://localhost:80").items()
    client.set_cookie(name, secret)
    client.environ_base |= {"HTTP_SEC_FETCH_SITE": "same-origin", "HTTP_X_CSRF_TOKEN": token_of(secret)}
    return client


@pytest.fixture
def told(stage: Stage) -> str:
    """A session of three calls with a secret: a denied and a done one, in which texts repeat the secret, and a waiting one."""
    session_id = stage.session()
    stage.propose(session_id, call(command=COMMAND))
    stage.decide(stage.approvals(session_id)[-1], result="deny", deny_message=f"not with {SECRET}")
    edited = stage.propose(session_id, call(command=COMMAND))
    stage.decide(stage.approvals(session_id)[-1], result="allow", updated_input={"command": f"deploy --password={OTHER}"})
    stage.run_call(edited, f"used {OTHER}")
    stage.propose(session_id, call(command=COMMAND))
    return session_id


PATHS = (
    *("/v1/approvals", "/v1/approvals/APPROVAL", "/v1/sessions/SESSION", "/v1/sessions/SESSION/messages"),
    *("/v1/sessions/SESSION/events?include=approvals", "/inbox?show=all", "/inbox?show=decided", "/inbox/sessions/SESSION"),
    *("/inbox/approvals/APPROVAL", "/inbox/approvals/APPROVAL/edit", "/inbox/approvals/APPROVAL/always"),
    "/v1/approvals/APPROVAL/briefing",
)


def test_a_view_masks_nothing_in_a_transaction(stage: Stage, told: str, browser: Client, searches: list[bool]) -> None:
    searches.clear()
    denied, edited, waits = [approval.id for approval in stage.approvals(told)]
    for url in dict.fromkeys(path.replace("APPROVAL", id_) for path in PATHS for id_ in (denied, edited, waits)):
        answer = browser.get(url.replace("SESSION", told))
        assert answer.status_code == 200, f"{url}: {answer.text}"
        assert "hunter2" not in answer.text, url
        assert "hunter3" not in answer.text, url
        assert not any(searches), url


def test_a_message_s_link_masks_nothing_in_a_transaction(stage: Stage, told: str, flask_app: Flask, searches: list[bool]) -> None:
    approval = stage.approvals(told)[-1]
    with transaction(stage.workspace_id) as db:
        url = issue(db, approval, member(stage, "approver").person_id)[0]
    searches.clear()
    answer = flask_app.test_client().get(url)
    assert "«masked»" in answer.text
    assert "hunter2" not in answer.text
    assert not any(searches)
