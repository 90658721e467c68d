"""Characters that a screen hides are written out in prompts and questions, and make a command line ask."""

import pytest

from models.policy.prompting import fill
from models.pure.shell import read
from models.pure.text.visible import visible
from workers.tools.execution import storable_question
from workers.tools.kinds import ToolQuestion, ToolResult

HIDDEN = {"\u200b": "<U+200B>", "\u3164": "<U+3164>", "\ufeff": "<U+FEFF>", "\u2800": "<U+2800>", "\u202e": "<U+202E>"}


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_hidden_character_is_written_out_in_texts_and_prompts(hidden: str) -> None:
    shown = f"a{HIDDEN[hidden]}b"
    assert visible(f"a{hidden}b") == shown
    assert fill("{n}", "tool", {"n": f"a{hidden}b"}) == shown


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_hidden_character_is_written_out_in_a_tool_s_question(hidden: str) -> None:
    result = ToolResult([], question=ToolQuestion({"k": {"message": f"a{hidden}b", "schema": {}}}, None))
    question = storable_question(result, 1000).question
    assert question
    assert question.requests["k"]["message"] == f"a{HIDDEN[hidden]}b"


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_command_line_with_a_hidden_character_is_asked(hidden: str) -> None:
    assert read(f"echo a{hidden}b").doubt
