"""The README and the pages in docs/ are true: every snippet is run or validated, and every name in them exists.

`test_assent_up_runs_everything.py` runs the snippets that need a running Assent.
"""

import json
import re
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from crashes.processes import running, wait_for
from local.commands import check_assent, check_command
from local.documents import (
    BUDGET,
    CONFTEST,
    CREW,
    OPENAI,
    PAGES,
    ROOT,
    SDK,
    TESTS,
    TOOLSETS,
    Snippet,
    inline,
    lines_of_shell,
    snippets,
)
from local.request_bodies import bare, check_body, routes
from standardwebhooks import Webhook

from deploy.folder import free_port
from models.outbox.endpoint import new_secret
from models.people.issuer import Issuer
from models.settings import settings
from models.settings.providers import registry
from models.settings.variables import names_of_settings


def test_the_receiver_of_webhooks_takes_only_signed_deliveries(tmp_path: Path) -> None:
    [snippet] = [snippet for snippet in snippets("python") if "webhook_key" in snippet.text]
    assert (snippet.page, len([line for line in snippet.text.splitlines() if line])) == ("README.md", 10)
    assert {*snippets("python")} == {*SDK, *TOOLSETS, CONFTEST, TESTS, OPENAI, BUDGET, CREW, snippet}
    secret, payload, now = new_secret(), '{"type": "event", "data": {"type": "session.idled", "id": "sesn_1"}}', datetime.now(UTC)
    signature = Webhook(secret).sign("whev_1", now, payload)
    headers = {"webhook-id": "whev_1", "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}
    port = free_port()
    env = {"ASSENT_WEBHOOK_KEY": secret, "PORT": str(port)}
    with running([sys.executable, "-c", snippet.text], env, tmp_path / "log") as receiver:
        wait_for("it listens", lambda: is_open(port), 60)
        url = f"http://127.0.0.1:{port}/"
        assert httpx2.post(url, content=payload, headers=headers | {"webhook-id": "whev_2"}).status_code == 500
        assert httpx2.post(url, content=payload, headers=headers).status_code == 204
        receiver.wait_for_output(r"(?m)^session\.idled sesn_1$")
        assert receiver.log.read_text().count("session.idled") == 1


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_each_snippet_is_in_a_language_that_is_checked() -> None:
    """`text` is for drawings and output, never for what somebody may type or send."""
    assert not [str(snippet) for snippet in snippets() if snippet.language not in {"sh", "python", "json", "text"}]
    for snippet in snippets("text"):
        assert not re.search(r"^\s*(assent|curl|make|export|\{)", snippet.text, re.MULTILINE), str(snippet)


@pytest.mark.parametrize("snippet", snippets("sh"), ids=str)
def test_each_command_exists_with_its_options(snippet: Snippet) -> None:
    for line in lines_of_shell(snippet):
        check_command(line)


@pytest.mark.parametrize("snippet", snippets("json"), ids=str)
def test_each_json_is_valid_for_its_reader(snippet: Snippet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Routes read bodies, and policies and tools as parts of bodies. Servers, providers and issuers have readers of their own."""
    value = json.loads(snippet.text)
    if snippet.about == "mcp":
        from workers.tools.mcp.servers import configured

        (tmp_path / "mcp.json").write_text(snippet.text)
        monkeypatch.setenv("ASSENT_MCP_CONFIG", str(tmp_path / "mcp.json"))
        settings.cache_clear()
        assert configured().keys() == value["mcpServers"].keys()
    elif snippet.about == "providers":
        (tmp_path / "providers.json").write_text(snippet.text)
        monkeypatch.setenv("ASSENT_PROVIDERS", str(tmp_path / "providers.json"))
        settings.cache_clear()
        assert [entry.name for entry in registry()] == [entry["name"] for entry in value["providers"]]
    elif snippet.about == "issuers":
        for entry in value["issuers"]:
            Issuer.model_validate(entry)
    elif snippet.about == "slack":
        assert ("POST", urlsplit(value["settings"]["interactivity"]["request_url"]).path) in routes()
        assert value["oauth_config"]["scopes"]["bot"] == ["chat:write"], "the scope of the methods that the notifier calls"
    elif snippet.about == "policy":
        check_body("POST", "/v1/policy", {"permission_policy": value})
    elif snippet.about == "tool":
        toolset = {"type": "agent_toolset_20260401", "configs": [value]}
        check_body("POST", "/v1/agents", {"name": "A", "model": "claude-opus-5-5", "tools": [toolset]})
    else:
        check_body(*snippet.about.split(), value)


@pytest.mark.parametrize("snippet", TOOLSETS, ids=str)
def test_each_toolset_is_declared_as_the_example_s(snippet: Snippet) -> None:
    from examples import orders
    from workers.tools.python.runner.tools import RunnableTool

    names: dict[str, Any] = {"__name__": "documents"}
    exec(snippet.text, names)
    shown, real = (RunnableTool("orders", toolset.tools["refund"]).entry for toolset in (names["orders"], orders.orders))
    for name in ("effect", "idempotent", "policy", "prompt"):
        assert shown[name] == real[name]
    assert shown["input_schema"]["properties"].keys() <= real["input_schema"]["properties"].keys()


def test_each_command_in_a_sentence_exists() -> None:
    for _, match in inline(r"assent ([a-z].*)"):
        check_assent(match[1].split())


def test_each_route_in_a_sentence_exists() -> None:
    """`GET /v1/grants`, or `/v1/grants` by any method."""
    known = {route for method, path in routes() for route in ((method, path), (None, path))}
    written = inline(r"(?:(GET|POST|DELETE) |(?=/v1/))(/[a-z][^ ]*)")
    assert not [(page, match[0]) for page, match in written if (match[1], bare(match[2])) not in known]


NOT_SETTINGS = {
    "ASSENT_URL",
    "ASSENT_API_KEY",
    "ASSENT_BACKUP_RECIPIENTS",
    "ASSENT_SCALER_PASSWORD",
    "ASSENT_WEBHOOK_KEY",
    "ASSENT_FUZZ_SEED",
    "ASSENT_FUZZ_SECONDS",
    "ASSENT_SERVER_PYTHON",
}
"""Variables that only commands and tests read."""


def test_each_variable_is_a_setting() -> None:
    known = {*names_of_settings().values(), *NOT_SETTINGS}
    assert not [(page, match[1]) for page, match in inline(r"(ASSENT_[A-Z_]+)(=.*)?") if match[1] not in known]


def test_each_file_and_folder_is_there() -> None:
    paths = inline(r"(tests|deploy|models|workers|api|docs)/[\w./-]*")
    assert not [(page, match[0]) for page, match in paths if not (ROOT / match[0]).exists()]


def test_each_link_leads_to_a_page() -> None:
    for page, text in PAGES.items():
        for target in re.findall(r"\]\(([^)#\s]+)", text):
            assert target.startswith("https://") or ((ROOT / page).parent / target).exists(), (page, target)


def test_each_name_is_defined_where_the_page_says() -> None:
    for name, folder in re.findall(r"`(\w+)` in `(\w+)/`", "".join(PAGES.values())):
        definition = re.compile(rf"^(?:class |def )?{name}\b(?:\(|:| =)", re.MULTILINE)
        assert any(definition.search(path.read_text()) for path in (ROOT / folder).rglob("*.py")), (name, folder)


def test_each_page_of_docs_begins_with_its_subject_and_is_in_the_index() -> None:
    for page in (page for page in PAGES if page.startswith("docs/")):
        title, empty, paragraph = PAGES[page].split("\n")[:3]
        assert title.startswith("# "), page
        assert empty == "", page
        assert re.match(r"[A-Z][a-z]* ", paragraph), page
        name = page.removeprefix("docs/")
        assert name == "README.md" or f"]({name})" in PAGES["docs/README.md"], page


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len(PAGES["README.md"].splitlines()) < 120
    assert len(PAGES["README.md"].split()) < 1200
