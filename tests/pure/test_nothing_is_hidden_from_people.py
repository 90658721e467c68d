"""Whatever a screen would obey or hide is written out wherever people decide: prompts, questions of tools, the terminal."""

import pytest

from models.pure.prompting import fill
from models.pure.shell import read
from models.pure.visible import visible
from workers.tools.execution import storable_question
from workers.tools.kinds import Question, ToolResult

HIDDEN = {"\u200b": "<U+200B>", "\u3164": "<U+3164>", "\ufeff": "<U+FEFF>", "\u2800": "<U+2800>", "\u202e": "<U+202E>"}


@pytest.mark.parametrize("hidden", HIDDEN)
def test_it_is_written_out_in_the_same_way(hidden: str) -> None:
    shown = f"a{HIDDEN[hidden]}b"
    assert visible(f"a{hidden}b") == shown
    assert fill("{n}", "tool", {"n": f"a{hidden}b"}) == shown


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_question_of_a_tool_shows_it(hidden: str) -> None:
    asked = ToolResult([], question=Question({"k": {"message": f"a{hidden}b", "schema": {}}}, None))
    question = storable_question(asked, 1000).question
    assert question
    assert question.requests["k"]["message"] == f"a{HIDDEN[hidden]}b"


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_command_line_that_holds_it_is_asked_about(hidden: str) -> None:
    assert read(f"echo a{hidden}b").doubt
