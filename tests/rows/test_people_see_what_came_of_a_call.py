"""A person sees what came of a call: how it ended, how long it took, and the line of its result that tells most."""

from typing import Any

import pytest
from own_database import Clock
from rows.stage import Stage, call, say

from models.briefing.outcome import CallOutcome, outcomes_of
from models.database.transactions import transaction
from models.session.tool_call.row import ToolCall
from models.workspace.halt import Halt

EDIT = call("edit", file_path="a", old_string="b", new_string="c")


def allowed(stage: Stage, block: dict[str, Any] | None = None, **session: Any) -> ToolCall:
    """A call that a person has allowed."""
    session_id = stage.session(**session)
    tool_call = stage.propose(session_id, block)
    stage.decide(stage.approvals(session_id)[-1], result="allow")
    return tool_call


def outcome(stage: Stage, tool_call: ToolCall) -> CallOutcome:
    with transaction(stage.workspace_id) as db:
        return outcomes_of(db, [tool_call.id, None])[tool_call.id]


def finish(stage: Stage, clock: Clock, tool_call: ToolCall, *texts: str, is_error: bool = False) -> CallOutcome:
    held = stage.begin_call(tool_call)
    clock.advance(1.25)
    stage.finish_call(held, content=[say(text) for text in texts], is_error=is_error)
    return outcome(stage, tool_call)


def test_a_call_waits_runs_and_is_done(stage: Stage, clock: Clock) -> None:
    tool_call = allowed(stage)
    seen = [(outcome(stage, tool_call).words, outcome(stage, tool_call).tone)]
    held = stage.begin_call(tool_call)
    seen.append((outcome(stage, tool_call).words, outcome(stage, tool_call).tone))
    clock.advance(1.25)
    stage.finish_call(held, "ok")
    seen.append((outcome(stage, tool_call).sentence.replace("1.3", "1.2"), outcome(stage, tool_call).tone))
    assert seen == [("Allowed, waiting for a worker", "waits"), ("Running", "waits"), ("Done in 1.2 s: ok", "good")]


def test_a_command_tells_its_exit_code_and_the_last_line_that_it_printed(stage: Stage, clock: Clock) -> None:
    done = finish(stage, clock, allowed(stage), "stdout:\none\ntwo\n\n", "stderr:\nwarning\n", "exit code: 0\ndirectory: .")
    assert (done.exit_code, done.line, done.tone) == (0, "two", "good")
    assert done.text.startswith("stdout:\none")
    lines = ("stdout:\none\n", "stderr:\nfatal: no such branch\n", "exit code: 128\ndirectory: .")
    failed = finish(stage, clock, allowed(stage), *lines, is_error=True)
    assert (failed.exit_code, failed.line, failed.tone) == (128, "fatal: no such branch", "bad")
    assert failed.words.startswith("Failed after 1.")


def test_another_tool_tells_the_first_line_of_its_result(stage: Stage, clock: Clock) -> None:
    done = finish(stage, clock, allowed(stage, EDIT, edit="always_ask"), "\nEdited a.\nOne place.")
    assert (done.exit_code, done.line) == (None, "Edited a.")


def test_a_call_that_is_allowed_in_a_halt_is_held_by_it(stage: Stage) -> None:
    tool_call = allowed(stage)
    with transaction(stage.workspace_id) as db:
        Halt.start(db, stage.principal, "It pays twice.")
    assert (outcome(stage, tool_call).words, outcome(stage, tool_call).tone) == ("Allowed, held by the halt", "waits")
    with transaction(stage.workspace_id) as db:
        Halt.end(db, stage.principal)
    assert outcome(stage, tool_call).words == "Allowed, waiting for a worker"


def test_a_call_with_an_unknown_outcome_is_told_in_amber(stage: Stage, clock: Clock) -> None:
    tool_call = allowed(stage)
    stage.lose(stage.begin_call(tool_call), clock)
    assert (outcome(stage, tool_call).words, outcome(stage, tool_call).tone) == ("Outcome unknown", "due")


def test_a_secret_of_the_input_is_masked_in_the_outcome(stage: Stage, clock: Clock) -> None:
    secret = "hunter2hunter2"
    done = finish(
        stage, clock, allowed(stage, call(command=f"login --password {secret}")), f"stdout:\nHello {secret}\n", "exit code: 0"
    )
    assert secret not in done.line + done.text
    assert done.line.startswith("Hello ")


@pytest.mark.parametrize("number", [1, 3000])
def test_hidden_characters_are_written_out_and_a_long_result_is_cut(stage: Stage, clock: Clock, number: int) -> None:
    done = finish(stage, clock, allowed(stage, EDIT, edit="always_ask"), "a\u202eb" * number)
    assert done.line.startswith("a<U+202E>b")
    assert (len(done.line) <= 161, len(done.text) <= 2000, done.is_cut) == (True, True, number > 1)
