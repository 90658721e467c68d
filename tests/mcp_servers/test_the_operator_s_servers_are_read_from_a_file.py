"""The operator's file has the format that other MCP clients read, and errors name its faults."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workers.tools.mcp.servers import Server, ServersMisconfigured, configured, for_url

Write = Callable[[Any], Path]


@pytest.fixture
def write(tmp_path: Path, set_environment: Callable[..., None]) -> Write:
    """Write the file."""

    def into(content: Any) -> Path:
        file = tmp_path / "mcp.json"
        file.write_text(content if isinstance(content, str) else json.dumps({"mcpServers": content}))
        set_environment(ASSENT_MCP_CONFIG=file)
        return file

    return into


def test_without_a_file_there_are_no_servers() -> None:
    assert configured() == {}


def test_commands_and_urls_are_read(write: Write, tmp_path: Path) -> None:
    write(
        {
            "files": {"command": "npx", "args": ["-y", "server"], "env": {"A": "1"}, "cwd": "work"},
            "tickets": {"type": "http", "url": "http://10.0.0.1/mcp", "headers": {"X-Key": "1"}, "trust_annotations": True},
            "off": {"command": "x", "disabled": True},
        }
    )
    assert configured() == {
        "files": Server("files", command="npx", args=("-y", "server"), env={"A": "1"}, cwd=str(tmp_path / "work"), ours=True),
        "tickets": Server("tickets", "http://10.0.0.1/mcp", {"X-Key": "1"}, trusted=True, ours=True),
    }


def test_environment_variables_are_filled_in(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    monkeypatch.delenv("HOST_NAME", raising=False)
    write({"a": {"url": "https://${HOST_NAME:-example.com}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}})
    server = configured()["a"]
    assert (server.url, server.headers) == ("https://example.com/mcp", {"Authorization": "Bearer hunter2"})
    assert "hunter2" not in repr(server)


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ({"a": {"url": "https://x/${NO_SUCH_VARIABLE}"}}, "server 'a', field url: names the environment variable NO_SUCH_VARIABLE"),
        ({"a": {"command": "x", "env": {"B": "${NO_SUCH_VARIABLE}"}}}, "server 'a', field env.B: names the environment variable"),
        ({"a": {"command": "x", "args": [1]}}, "server 'a', field args[0]: Input should be a valid string"),
        ({"a": {"command": "x", "args": "y"}}, "server 'a', field args: Input should be a valid list"),
        ({"a": {"command": "x", "url": "https://x"}}, "server 'a': must have either"),
        ({"a": {}}, "server 'a': must have either"),
        ({"a": []}, "server 'a': Input should be a valid dictionary"),
        ({"a": {"url": "ftp://x"}}, "server 'a', field url: must begin with"),
        ({"a": {"url": "https://me:secret@x"}}, "server 'a', field url: must not hold a password"),
        ({"a": {"type": "sse", "url": "https://x"}}, "server 'a', field type: Input should be 'stdio', 'http'"),
        ({"a": {"type": "stdio", "url": "https://x"}}, 'server \'a\': "type" must be "stdio" with "command"'),
        ({"a": {"url": "https://x", "headers": {"A": "b\nc"}}}, "server 'a', field headers.A: must be a string of one line"),
        (
            {"a": {"command": "x", "trust_annotations": "yes"}},
            "server 'a', field trust_annotations: Input should be a valid boolean",
        ),
        ({"a b": {"command": "x"}}, "server 'a b': unusable name"),
        ("{", "is not JSON"),
        ("[]", 'must be an object with the field "mcpServers"'),
    ],
)
def test_an_error_names_the_file_the_server_the_field_and_the_fault(write: Write, content: Any, where: str) -> None:
    file = write(content)
    with pytest.raises(ServersMisconfigured) as caught:
        configured()
    assert str(caught.value).startswith(f"{file}: ")
    assert where in str(caught.value)


def test_a_missing_file_is_an_error(set_environment: Callable[..., None]) -> None:
    set_environment(ASSENT_MCP_CONFIG="/no/such/file")
    with pytest.raises(ServersMisconfigured, match="correct ASSENT_MCP_CONFIG"):
        configured()


def test_unknown_fields_are_named_in_the_log(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    write({"a": {"command": "x", "arg": [], "alwaysAllow": ["y"]}})
    with caplog.at_level(logging.WARNING):
        configured()
    assert "unknown fields are ignored: alwaysAllow, arg" in caplog.text


def test_a_client_s_url_gets_the_headers_and_the_trust_that_the_operator_gave_it(write: Write) -> None:
    write({"tickets": {"url": "https://tickets.example/mcp", "headers": {"X-Key": "1"}, "trust_annotations": True}})
    server = for_url("https://TICKETS.example:443/mcp")
    assert (server.headers, server.trusted, server.ours) == ({"X-Key": "1"}, True, True)
    assert server.address == "https://TICKETS.example:443/mcp"
    assert configured()["tickets"].address == "assent:tickets"


def test_any_other_url_gets_no_headers_and_no_trust(write: Write) -> None:
    write({"tickets": {"url": "https://tickets.example/mcp", "headers": {"X-Key": "1"}, "trust_annotations": True}})
    for url in (
        "https://tickets.example/mcp/",
        "http://tickets.example/mcp",
        "https://tickets.example/mcp?a",
        "nonsense",
        "https://[",
    ):
        assert for_url(url) == Server(url, url)
