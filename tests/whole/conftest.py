"""Everything real at once: a served API, workers that run as in production, the official SDK, MCP servers and a toolset."""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from anthropic import Anthropic
from crashes.processes import MCP_SERVER, READY, TOOLS, TURNS, mcp_server, running, stand_in, wait_for
from doors.served import key, served
from own_database import Cleaner, DatabaseUrls
from rows.stage import Stage

from examples import orders
from models.session.approval.row import Approval

BEAT = [sys.executable, "-m", "celery", "-A", "workers", "beat", "--scheduler", "workers.sweeps.scheduler:Scheduler"]
ALLOW = {"type": "always_allow"}


@dataclass(frozen=True)
class House:
    """The addresses of everything."""

    api: str
    mcp: str
    """The URL of an MCP server."""
    shop: str
    """The database of the toolset's shop."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs, workdirs, configuration."""
    return tmp_path_factory.mktemp("whole")


@pytest.fixture(scope="session")
def mcp_url(folder: Path) -> Iterator[str]:
    """An MCP server over streamable HTTP."""
    with mcp_server(folder) as url:
        yield url


@pytest.fixture(scope="module")
def house(folder: Path, mcp_url: str, database_urls: DatabaseUrls, cleaner: Cleaner, redis_urls: list[str]) -> Iterator[House]:
    """Everything, with a toolset in Python and an operator's MCP server over stdio."""
    cleaner.clean()
    config = folder / "mcp.json"
    stdio = {"command": sys.executable, "args": [str(MCP_SERVER), "stdio"]}
    config.write_text(json.dumps({"mcpServers": {"local": stdio}}))
    with stand_in(folder) as model, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ORDERS_DATABASE_URL", database_urls.admin)
        orders.create()
        env = {
            "ASSENT_PROVIDERS": str(registry(folder, model)),
            "MODEL_KEY": "any-key-will-do",
            "REDIS_URL": redis_urls[2],
            "ASSENT_SHELL": "bare",
            "ASSENT_ENVIRONMENT": "development",
            "ASSENT_WORKDIR_ROOT": str(folder / "workdirs"),
            "ASSENT_TOOLSETS": "examples.orders:orders",
            "ASSENT_MCP_CONFIG": str(config),
            "ASSENT_ALLOWED_PRIVATE_HOSTS": "127.0.0.1 localhost",
            "ASSENT_STREAM_POLL_SECONDS": "0.2",
            "ASSENT_BACKOFF_SECONDS": "0.02",
            "ASSENT_MODEL_ATTEMPTS": "3",
            "ASSENT_SWEEP_SECONDS": "0.5",
            "ASSENT_REHINT_SECONDS": "0.5",
        }
        with (
            served(folder / "api.log", **env) as api,
            running(TURNS, env, folder / "turns.log") as turns,
            running(TOOLS, env, folder / "tools.log") as tools,
            running(BEAT, env, folder / "beat.log"),
        ):
            for worker in (turns, tools):
                worker.wait_for_output(READY)
            with psycopg.connect(database_urls.admin, autocommit=True) as db:
                both = "SELECT 1 FROM toolset WHERE name IN ('local', 'orders') HAVING count(*) = 2"
                wait_for("the toolsets are announced", lambda: db.execute(both).fetchone(), seconds=60)
            yield House(api, mcp_url, database_urls.admin)
    with psycopg.connect(database_urls.admin) as db:
        db.execute("DROP SCHEMA IF EXISTS shop CASCADE")


def registry(folder: Path, model: str) -> Path:
    """A registry of providers: the same stand-in model on each wire, and one provider that does not respond."""
    entries = [
        {"name": "claude", "kind": "anthropic", "base_url": model, "models": ["claude-*"]},
        {"name": "open", "kind": "openai", "base_url": f"{model}/v1", "models": ["llama-*"]},
        {"name": "away", "kind": "openai", "base_url": "http://127.0.0.1:9/v1", "models": ["away-*"]},
    ]
    path = folder / "providers.json"
    path.write_text(json.dumps({"providers": [entry | {"api_key_env": "MODEL_KEY"} for entry in entries]}))
    return path


@dataclass
class Talk:
    """One session, through the SDK."""

    sdk: Anthropic
    stage: Stage
    session_id: str

    def say(self, *lines: str) -> None:
        """Post a message, whose lines are the stand-in's script."""
        content = [{"type": "text", "text": "\n".join(lines)}]
        self.sdk.beta.sessions.events.send(self.session_id, events=[{"type": "user.message", "content": content}])  # type: ignore[list-item, typeddict-item]

    def decide(self, **decision: Any) -> None:
        """Decide the last approval, as a person."""
        self.sdk.post(f"/v1/approvals/{self.approval.id}/decision", body=decision, cast_to=object)

    def until(self, status: str) -> "Talk":
        """Wait until the session has this status."""
        wait_for(f"the session is {status}", lambda: self.stage.read(self.session_id).status == status, 40)
        return self

    def events(self, kind: str) -> list[dict[str, Any]]:
        """The session's events of one type, as the SDK returns them."""
        events = self.sdk.beta.sessions.events.list(self.session_id, limit=1000)
        return [event.to_dict() for event in events if event.type == kind]

    def results(self) -> list[str]:
        """The texts of the results of toolsets, in order."""
        return [event["content"][0]["text"] for event in self.events("agent.mcp_tool_result")]

    @property
    def approval(self) -> Approval:
        """The last approval."""
        return self.stage.approvals(self.session_id)[-1]


Begin = Callable[..., Talk]


@pytest.fixture
def begin(house: House) -> Iterator[Begin]:
    """Begins sessions in a new workspace: `begin(shop="assent:orders")`. `policies` are those of the servers, by name."""
    stage = Stage()
    # The SDK keeps its retries: the server may close a connection that rested for 2 s just when it is used again.
    with Anthropic(api_key=key(stage), base_url=house.api, _strict_response_validation=True) as sdk:
        environment = next(iter(sdk.beta.environments.list())).id

        def begin_session(
            policies: dict[str, Any] | None = None,
            *,
            agent: dict[str, Any] | None = None,
            model: Any = "claude-whole",
            bash: dict[str, Any] | None = None,
            **servers: str,
        ) -> Talk:
            toolsets: list[Any] = [
                {"type": "mcp_toolset", "mcp_server_name": name}
                | ({"default_config": {"permission_policy": policies[name]}} if policies and name in policies else {})
                for name in servers
            ]
            toolsets.append({"type": "agent_toolset_20260401", "default_config": {"permission_policy": bash or ALLOW}})
            mcp_servers: list[Any] = [{"type": "url", "name": name, "url": url} for name, url in servers.items()]
            created = sdk.beta.agents.create(
                name="Whole", model=model, tools=toolsets, mcp_servers=mcp_servers, extra_body=agent or {}
            )
            return Talk(sdk, stage, sdk.beta.sessions.create(agent=created.id, environment_id=environment).id)

        yield begin_session
