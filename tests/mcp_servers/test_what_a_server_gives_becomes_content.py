"""Results become blocks that every model takes; anything else becomes a text that describes it."""

import json
from typing import Any

import pytest
from mcp_servers.conftest import Caller, text
from mcp_servers.lying import Liar
from mcp_servers.server import PIXEL

from workers.tools.kinds import ToolResult
from workers.tools.mcp.calling import mcp_tool


def test_kinds_that_models_take_are_kept_and_the_others_described(caller: Caller) -> None:
    assert caller.call("everything").content == [
        {"type": "text", "text": "words"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
        {"type": "text", "text": "[an image of type image/tiff, 4 bytes, which was left out]"},
        {"type": "text", "text": "[audio of type audio/wav, 4 bytes, which was left out]"},
        {"type": "text", "text": "[a link to file:///log (log, 12 bytes), which was not read]"},
        {"type": "text", "text": "read me"},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PIXEL}},
        {"type": "text", "text": "[the resource file:///c of type application/zip, 4 bytes, which was left out]"},
    ]


def test_structured_data_is_passed_on(caller: Caller) -> None:
    assert caller.call("table").structured == {"rows": 3}


def answered(liar: Liar, result: dict[str, object], **entry: object) -> ToolResult:
    liar.on_call(lambda request: request.result(result))
    caller = Caller(liar.server)
    return mcp_tool(caller.server, {**caller.entry("act"), **entry}).run(caller.context(), {})


def test_data_without_a_text_stands_as_text_too(liar: Liar) -> None:
    result = answered(liar, {"content": [], "structuredContent": {"rows": 3}})
    assert (text(result), result.structured) == ('{"rows": 3}', {"rows": 3})


def test_data_that_does_not_fit_the_tool_s_schema_is_left_out(liar: Liar) -> None:
    schema = {"type": "object", "properties": {"rows": {"type": "integer"}}}
    result = answered(
        liar, {"content": [{"type": "text", "text": "said"}], "structuredContent": {"rows": "3"}}, output_schema=schema
    )
    assert result.structured is None
    assert text(result) == "said\n[the result's data was left out: input.rows: must be integer, not string]"


@pytest.mark.parametrize("data", [{"name": "\0"}, {"deep": json.loads("[" * 100 + "]" * 100)}], ids=["NUL", "deep"])
def test_data_that_cannot_be_stored_is_left_out(liar: Liar, data: dict[str, Any]) -> None:
    result = answered(liar, {"content": [{"type": "text", "text": "said"}], "structuredContent": data})
    assert result.structured is None
    assert text(result) == "said\n[the result's data was left out: the data cannot be stored]"


def test_an_image_that_is_no_base64_is_named(liar: Liar) -> None:
    result = answered(liar, {"content": [{"type": "image", "mimeType": "image/png", "data": "???"}]})
    assert text(result) == "[an image of type image/png, not readable, which was left out]"


def test_progress_and_log_messages_are_seen_while_it_runs(caller: Caller) -> None:
    context = caller.context()
    caller.run(context, "chat")
    assert context.output.texts() == {"stdout": "1/2 half\n", "stderr": "info: so far so good\n"}


def test_a_server_that_is_a_command_has_a_clean_environment(piped: Caller) -> None:
    process = json.loads(text(piped.call("environment")))
    assert set(process["env"]) <= {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LD_LIBRARY_PATH", "LC_CTYPE"}
