"""A task's outcome is a few words for operators, without contents. A turn that ended in an error is a failed task."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_database import DatabaseUrls
from rows.refusing import refusing
from rows.stage import Stage, call, say

from models.database import transactions
from models.database.transactions import Hint, transaction
from models.operate import queued
from models.session.tool_call.row import ToolCall
from workers import outcome, tool, turn
from workers.outcome import LONGEST, Failed
from workers.providers import ModelError, ModelReply

LOGS = ("celery", "workers")


def ids_of(stage: Stage, **policies: Any) -> tuple[str, str, str]:
    """Queue a turn. Returns the arguments of its task."""
    session_id = stage.session(**policies)
    stage.message(session_id)
    return stage.thread(session_id).turn_id or "", session_id, stage.workspace_id


def test_a_turn_names_the_statuses_and_the_tools_of_its_calls(stage: Stage, answers: Callable[..., None]) -> None:
    ids = ids_of(stage, bash="always_ask", read="always_allow")
    calls = [call(command="rm -r secret"), call(command="ls"), call("read", file_path="a"), call("tool_of_the_model_s_own")]
    answers(ModelReply([say("I begin."), *calls], "tool_use"))
    assert turn.run(*ids) == "asked 2: bash; queued 1: read; refused 1"


@pytest.mark.parametrize(
    ("stop_reason", "words"),
    [("end_turn", "replied: end_turn"), ("my secret: <b>", "replied: other"), ("x" * 500, "replied: other")],
)
def test_a_turn_without_calls_names_the_stop_reason_if_it_is_a_word(
    stage: Stage, answers: Callable[..., None], stop_reason: str, words: str
) -> None:
    answers(ModelReply([say("A secret.")], stop_reason))
    assert turn.run(*ids_of(stage)) == words


def test_a_hint_that_claims_nothing_says_so(stage: Stage, answers: Callable[..., None]) -> None:
    ids = ids_of(stage)
    answers(ModelReply([say("Done.")], "end_turn"))
    assert [turn.run(*ids), turn.run(*ids)] == ["replied: end_turn", "nothing to do"]
    assert tool.run("toolu_none", ids[1], ids[2]) == "nothing to do"


ENDS = {
    "an error for good": (ModelError("unacceptable", "prompt: secret", code="400 invalid_request_error"), "FAILURE"),
    "an error that may pass": (ModelError("overloaded", "prompt: secret", code="529 overloaded_error"), "RETRY"),
    "the limit of turns": (ModelReply([call()], "tool_use"), "FAILURE"),
}
WORDS = {
    "an error for good": "failed: 400 invalid_request_error",
    "an error that may pass": "tries again: 529 overloaded_error",
    "the limit of turns": "failed: tool_use_limit_reached_error",
}


@pytest.mark.parametrize("end", ENDS)
def test_an_error_is_a_failed_task_or_one_to_retry_without_a_traceback_in_the_log(
    stage: Stage, answers: Callable[..., None], caplog: pytest.LogCaptureFixture, end: str
) -> None:
    value, state = ENDS[end]
    answers(value)
    with caplog.at_level(logging.INFO):
        result = turn.run.apply(ids_of(stage, max_turns=1))
    assert result.state == state
    assert WORDS[end] in str(result.result)
    assert "secret" not in f"{result.result!r} {result.traceback}"
    ours = [record for record in caplog.records if record.name.startswith(LOGS)]
    assert not [record for record in ours if record.levelno >= logging.WARNING or record.exc_info]
    assert any(WORDS[end] in record.getMessage() for record in ours)


def test_a_claim_that_raises_is_a_failed_task_without_a_traceback_in_the_log(
    stage: Stage, database_urls: DatabaseUrls, caplog: pytest.LogCaptureFixture
) -> None:
    ids = ids_of(stage)
    with refusing(database_urls.admin, "turn", "NEW.status = 'running'"), caplog.at_level(logging.INFO):
        result = turn.run.apply(ids)
    assert (result.state, str(result.result)) == ("FAILURE", "left for later: CheckViolation")
    assert "violates" not in str(result.traceback), "the database's error is not part of the task's"
    assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(("command", "words"), [("true", "bash: done"), ("exit 3", "bash: done, with an error")])
def test_a_call_names_its_tool_and_its_end(
    stage: Stage, tmp_path: Path, setting: Callable[[str, str], None], command: str, words: str
) -> None:
    setting("workdir_root", str(tmp_path / "workdirs"))
    setting("shell", "bare")
    session_id = stage.session(bash="always_ask", max_turns=9)
    tool_call = stage.propose(session_id, call(command=command))
    stage.confirm(session_id, tool_call.id)
    assert tool.run(tool_call.id, session_id, stage.workspace_id) == words
    assert stage.get(ToolCall, tool_call.id).status == "done"


def test_a_message_names_the_tool_and_the_agent_for_flower(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Hint] = []
    monkeypatch.setattr(transactions, "_send", lambda outbox: sent.extend(outbox.hints))
    session_id = stage.session(read="always_allow")
    agent = {"agent": stage.read(session_id).agent_id}
    stage.message(session_id)
    stage.reply(session_id, call("read", file_path="secret"))
    with transaction(stage.workspace_id) as db:
        for table in ("turn", "tool_call"):
            db.write(f"UPDATE {table} SET hinted_at = NULL, due_at = due_at")
    assert [hint.about for hint in sent] == [str(agent), str({"tool": "read"} | agent)]
    assert [hint.about for hint in queued.hints(ToolCall)] == [str({"tool": "read"} | agent)], "a hint that is sent again"


def test_every_outcome_is_bounded() -> None:
    long = "x" * 10_000
    for words in (outcome.failed(long), outcome.tries_again(long), outcome.conclude(long)):
        assert len(str(words)) == LONGEST
    with pytest.raises(Failed):
        outcome.conclude(outcome.failed("why"))
