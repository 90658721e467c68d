"""The README and the pages in docs/ are true: every snippet is run or validated, and every name in them exists."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from anthropic import Anthropic
from crashes.processes import wait_for
from doors.browser import chromium
from local.commands import check_assent, check_command
from local.documents import PAGES, ROOT, Snippet, inline, lines_of_shell, snippets
from local.request_bodies import bare, check_body, routes
from playwright.sync_api import expect
from standardwebhooks import Webhook

from deploy.folder import free_port
from models.outbox.endpoint import new_secret
from models.people.issuer import Issuer
from models.providers import registry
from models.settings import settings
from models.variables import names_of_settings

RUN, APPROVALS = (snippet.text for snippet in snippets("sh", page="README.md"))
[OPENAI] = [snippet for snippet in snippets("python") if "OpenAI(" in snippet.text]
[BUDGET] = [snippet for snippet in snippets("python") if "budget=" in snippet.text]
SDK = [snippet for snippet in snippets("python") if "ASSENT_URL" in snippet.text and snippet not in (OPENAI, BUDGET)]
TOOLSETS = [snippet for snippet in snippets("python") if "Toolset(" in snippet.text]
ASK = {"type": "agent_toolset_20260401", "default_config": {"permission_policy": {"type": "always_ask"}}}

CANNOT_RUN: dict[str, str] = {}
"""Snippets of shell that nothing here validates, by their first line, with the reason. Empty is best."""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Starts everything by the README's first command, on a port and in a folder of its own. Returns the content of up.json."""
    folder = tmp_path_factory.mktemp("up")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("DATABASE", "REDIS", "ANTHROPIC", "ASSENT"))}
    arguments = f"ARGS=--port {free_port()} --data-dir {folder / 'data'}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([*RUN.split(), arguments], cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    ready = folder / "data" / "up.json"
    wait_for("it is up", lambda: process.poll() is not None or ready.exists(), 180)
    assert process.poll() is None, (folder / "log").read_text()[-3000:]
    running: dict[str, Any] = json.loads(ready.read_text())
    yield running
    os.kill(running["pid"], signal.SIGTERM)
    process.wait(30)


def run_snippet(snippet: Snippet, env: dict[str, str]) -> str:
    """The output of a Python snippet that ran to its end."""
    command = [sys.executable, "-c", snippet.text]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True).stdout


def ask_a_person(client: Anthropic, command: str) -> None:
    """Start a session whose shell command waits for a decision."""
    agent = client.beta.agents.create(name="Janitor", model="claude-opus-5-5", tools=[ASK])
    environment = client.beta.environments.list().data[0]
    session = client.beta.sessions.create(agent=agent.id, environment_id=environment.id, title="Sweep")
    text = f"call bash {json.dumps({'command': command})}"
    message = {"type": "user.message", "content": [{"type": "text", "text": text}]}
    with client.beta.sessions.events.stream(session.id) as stream:
        client.beta.sessions.events.send(session.id, events=[message])
        assert any(event.type == "session.status_idle" for event in stream)


@pytest.mark.crash
@pytest.mark.timeout(240)
def test_the_commands_and_the_python_snippets_decide_real_approvals(up: dict[str, Any]) -> None:
    """The first approval by the command line, all others by the snippets, in the order of the pages."""
    env = os.environ | {"ASSENT_URL": up["url"], "ASSENT_API_KEY": up["api_key"]}
    decided = subprocess.run(
        APPROVALS.split(), cwd=ROOT, env=env, input="1\n", capture_output=True, text=True, timeout=60, check=True
    )
    assert "Run shell command: " in decided.stdout
    assert "The session is idle: end_turn." in decided.stdout
    for choice in ("allow once", "deny with a message", "end the run"):
        assert choice in PAGES["README.md"]
        assert choice in decided.stdout
    first, *others = SDK
    assert first.page == "README.md"
    output = run_snippet(first, env)
    assert "wants to run bash" in output
    assert "got stdout:\nswept" in output
    with Anthropic(base_url=up["url"], api_key=up["api_key"]) as client:
        for snippet in others:
            ask_a_person(client, f"echo for {snippet}")
            assert f"echo for {snippet}" in run_snippet(snippet, env)
    output = run_snippet(OPENAI, env)
    assert "I am the stand-in model" in output
    assert output.endswith("And good-bye.")
    assert run_snippet(BUDGET, env) == "2500\n"
    waiting = subprocess.run([*APPROVALS.split(), "list", "--json"], cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    assert json.loads(waiting.stdout) == []


@pytest.mark.crash
@pytest.mark.timeout(240)
def test_the_sign_in_link_opens_the_inbox_and_what_is_allowed_there_runs(up: dict[str, Any]) -> None:
    with chromium() as browser, Anthropic(base_url=up["url"], api_key=up["api_key"]) as client:
        ask_a_person(client, "echo $((6 * 7)) brooms")
        page = browser.new_page()
        page.goto(up["sign_in_url"])
        page.get_by_label("Your name").fill("Anna")
        page.get_by_role("button", name="Sign in").click()
        page.goto(up["inbox_url"])
        row = page.locator("ul.rows > li", has_text="brooms")
        row.get_by_role("button", name="Allow once").click()
        expect(row).to_contain_text("Allowed by Anna")
        row.get_by_role("link").click()
        page.get_by_role("link", name="The whole session").click()
        expect(page.locator("#conversation")).to_contain_text("42 brooms")


def test_the_receiver_of_webhooks_reads_what_is_delivered_and_takes_nothing_else() -> None:
    [snippet] = [snippet for snippet in snippets("python") if "webhook_key" in snippet.text]
    assert {*snippets("python")} == {*SDK, *TOOLSETS, OPENAI, BUDGET, snippet}
    secret, payload, now = new_secret(), '{"type": "event", "data": {"type": "session.idled", "id": "sesn_1"}}', datetime.now(UTC)
    signature = Webhook(secret).sign("whev_1", now, payload)
    headers = {"webhook-id": "whev_1", "webhook-timestamp": str(int(now.timestamp())), "webhook-signature": signature}
    port = free_port()
    env = os.environ | {"ASSENT_WEBHOOK_KEY": secret, "PORT": str(port)}
    command = [sys.executable, "-c", snippet.text]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as receiver:
        try:
            wait_for("it listens", lambda: is_open(port), 60)
            url = f"http://127.0.0.1:{port}/"
            with pytest.raises(httpx.RemoteProtocolError):
                httpx.post(url, content=payload, headers=headers | {"webhook-id": "whev_2"}, trust_env=False)
            assert httpx.post(url, content=payload, headers=headers, trust_env=False).status_code == 204
        finally:
            receiver.terminate()
        assert receiver.communicate()[0] == "session.idled sesn_1\n"


def is_open(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.parametrize("snippet", snippets(), ids=str)
def test_each_snippet_is_in_a_language_that_is_checked(snippet: Snippet) -> None:
    """`text` is for drawings and output, never for what somebody may type or send."""
    assert snippet.language in {"sh", "python", "json", "text"}
    assert snippet.language != "text" or not re.search(r"^\s*(assent|curl|make|export|\{)", snippet.text, re.MULTILINE)


@pytest.mark.parametrize("snippet", snippets("sh"), ids=str)
def test_each_command_exists_with_its_options(snippet: Snippet) -> None:
    for line in lines_of_shell(snippet):
        if line not in CANNOT_RUN:
            check_command(line)


def test_each_snippet_that_cannot_run_is_still_there() -> None:
    lines = {line for snippet in snippets("sh") for line in lines_of_shell(snippet)}
    assert CANNOT_RUN.keys() <= lines


@pytest.mark.parametrize("snippet", snippets("json"), ids=str)
def test_each_json_is_taken_by_its_reader(snippet: Snippet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request's body by its route's model, a policy and a tool as parts of such a body, servers and issuers by their readers."""
    value = json.loads(snippet.text)
    if snippet.about == "mcp":
        from workers.tools.mcp.servers import configured

        (tmp_path / "mcp.json").write_text(snippet.text)
        monkeypatch.setenv("ASSENT_MCP_CONFIG", str(tmp_path / "mcp.json"))
        settings.cache_clear()
        try:
            assert configured().keys() == value["mcpServers"].keys()
        finally:
            monkeypatch.undo()
            settings.cache_clear()
    elif snippet.about == "providers":
        (tmp_path / "providers.json").write_text(snippet.text)
        monkeypatch.setenv("ASSENT_PROVIDERS", str(tmp_path / "providers.json"))
        settings.cache_clear()
        try:
            assert [entry.name for entry in registry()] == [entry["name"] for entry in value["providers"]]
        finally:
            monkeypatch.undo()
            settings.cache_clear()
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
    shown, real = (RunnableTool("orders", each.tools["refund"]).entry for each in (names["orders"], orders.orders))
    for name in ("effect", "idempotent", "policy", "prompt"):
        assert shown[name] == real[name]
    assert shown["input_schema"]["properties"].keys() <= real["input_schema"]["properties"].keys()


@pytest.mark.parametrize(("page", "match"), inline(r"assent ([a-z].*)"), ids=lambda value: getattr(value, "string", value))
def test_each_command_in_a_sentence_exists(page: str, match: re.Match[str]) -> None:
    check_assent(match[1].split())


@pytest.mark.parametrize(
    ("page", "match"), inline(r"(?:(GET|POST|DELETE) |(?=/v1/))(/[a-z][^ ]*)"), ids=lambda value: getattr(value, "string", value)
)
def test_each_route_in_a_sentence_exists(page: str, match: re.Match[str]) -> None:
    """`GET /v1/grants`, or `/v1/grants` by any method."""
    assert any(path == bare(match[2]) and match[1] in (None, method) for method, path in routes())


NOT_SETTINGS = {"ASSENT_URL", "ASSENT_API_KEY", "ASSENT_WEBHOOK_KEY", "ASSENT_FUZZ_SEED", "ASSENT_FUZZ_SECONDS"}
"""Variables that commands and tests read, not processes."""


@pytest.mark.parametrize(("page", "match"), inline(r"(ASSENT_[A-Z_]+)(=.*)?"), ids=lambda value: getattr(value, "string", value))
def test_each_variable_is_a_setting(page: str, match: re.Match[str]) -> None:
    assert match[1] in {*names_of_settings().values(), *NOT_SETTINGS}


@pytest.mark.parametrize(
    ("page", "match"), inline(r"(tests|deploy|models|workers|api|docs)/[\w./-]*"), ids=lambda value: getattr(value, "string", value)
)
def test_each_file_and_folder_is_there(page: str, match: re.Match[str]) -> None:
    assert (ROOT / match[0]).exists()


@pytest.mark.parametrize("page", PAGES)
def test_each_link_leads_to_a_page(page: str) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", PAGES[page]):
        assert target.startswith("https://") or ((ROOT / page).parent / target).exists(), target


@pytest.mark.parametrize(("name", "folder"), re.findall(r"`(\w+)` in `(\w+)/`", "".join(PAGES.values())), ids=str)
def test_each_name_is_defined_where_the_page_says(name: str, folder: str) -> None:
    definition = re.compile(rf"^(?:class |def )?{name}\b(?:\(|:| =)", re.MULTILINE)
    assert any(definition.search(path.read_text()) for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_each_page_of_docs_begins_with_what_it_is_about_and_is_in_the_index(page: str) -> None:
    title, empty, paragraph = PAGES[page].split("\n")[:3]
    assert title.startswith("# ")
    assert empty == ""
    assert re.match(r"[A-Z][a-z]* ", paragraph)
    name = page.removeprefix("docs/")
    assert name == "README.md" or f"]({name})" in PAGES["docs/README.md"]


def test_the_readme_is_read_in_five_minutes() -> None:
    assert len(PAGES["README.md"].splitlines()) < 120
    assert len(PAGES["README.md"].split()) < 1200
