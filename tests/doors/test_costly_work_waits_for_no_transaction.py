"""What somebody else made costly is calculated while no transaction is open: masks, and texts that may repeat secrets."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from doors.served import key
from flask import Flask
from rows.stage import Stage, call, say
from werkzeug.test import Client

from models.database import transactions
from models.database.rows import Db
from models.database.transactions import transact
from models.pure.masking import mask
from models.session.tool_call.result import CallResult

LONGEST = 0.1
"""Seconds of CPU time in one transaction. Each request below takes longer for what it calculates."""
PLACES = "password=x " * 4_000


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The CPU time of each transaction."""
    durations: list[float] = []
    transaction = transactions.transaction

    @contextmanager
    def timed(*arguments: Any, **more: Any) -> Iterator[Db]:
        began = time.thread_time()
        try:
            with transaction(*arguments, **more) as db:
                yield db
        finally:
            durations.append(time.thread_time() - began)

    monkeypatch.setattr(transactions, "transaction", timed)
    return durations


@pytest.fixture
def client(flask_app: Flask, stage: Stage) -> Client:
    """A client of this process's API, with a key."""
    client = flask_app.test_client()
    client.environ_base |= {"HTTP_X_API_KEY": key(stage)}
    return client


@pytest.fixture
def text() -> str:
    """A text with secrets of almost as many characters as are searched for in other texts. Compiled searches are cached."""
    return "".join(f"password={secrets.token_hex(30)}\n" for _ in range(60))


@pytest.fixture
def secret(text: str) -> str:
    """One of the secrets of the text."""
    return text.split(maxsplit=1)[0].partition("=")[2]


@pytest.mark.parametrize("result", ["allow", "deny"])
def test_a_decision_is_masked_outside_of_its_transaction(
    client: Client, stage: Stage, seconds: list[float], text: str, secret: str, result: str
) -> None:
    session_id = stage.session(write="always_ask")
    stage.propose(session_id, call("write", file_path="a", content=text))
    [approval] = stage.approvals(session_id)
    edit = {"updated_input": {"file_path": "a", "content": text + PLACES}}
    decision = {"result": result} | (edit if result == "allow" else {"deny_message": f"not with {secret}"})
    seconds.clear()
    began = time.thread_time()
    answer = client.post(f"/v1/approvals/{approval.id}/decision", json=decision)
    assert answer.status_code == 200, answer.text
    assert secret not in answer.text
    assert time.thread_time() - began > LONGEST
    assert max(seconds) < LONGEST
    stage.check(session_id)


def test_a_client_s_result_is_masked_outside_of_its_transaction(
    client: Client, stage: Stage, seconds: list[float], text: str, secret: str
) -> None:
    session_id = stage.session(custom=("save",))
    saved = stage.propose(session_id, call("save", note=text))
    seconds.clear()
    result = {"type": "user.custom_tool_result", "custom_tool_use_id": saved.id, "content": [say(f"with {secret}")]}
    answer = client.post(f"/v1/sessions/{session_id}/events", json={"events": [result]})
    assert answer.status_code == 200, answer.text
    assert secret not in answer.text
    assert stage.get(CallResult, saved.id).content == [say(f"with {secret}")]
    assert max(seconds) < LONGEST


def test_a_transaction_that_starts_anew_writes_once(stage: Stage) -> None:
    attempts: list[int] = []

    def act(db: Db) -> None:
        attempts.append(len(attempts) + 1)
        db.write("UPDATE workspace SET name = name || %(attempt)s", attempt=str(attempts[-1]))
        assert mask({"content": PLACES}).paths

    transact(stage.workspace_id, act)
    assert attempts == [1, 2]
    assert transact(stage.workspace_id, lambda db: db.value("SELECT name FROM workspace")) == "Stage2"
