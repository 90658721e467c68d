"""`assent webhooks` against the API as it is served. `listen` receives deliveries, and verifies them with the SDK."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import warm
from click.testing import CliRunner
from crashes.processes import wait_for
from doors.served import key, served
from local.conftest import Assent
from outbox.conftest import deliveries, endpoint_now, secret_of, send_due
from rows.stage import Stage, call

from api.cli.main import main
from models.database.transactions import transaction
from models.outbox.endpoint import Endpoint
from models.outbox.webhook_events import EVENTS
from models.settings import settings

Listen = Callable[..., warm.Process]
PRIVATE = {"ASSENT_ALLOWED_PRIVATE_HOSTS": "127.0.0.1"}


@pytest.fixture(scope="module")
def address(database_urls: object, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that may deliver to this machine."""
    log: Path = tmp_path_factory.mktemp("webhooks") / "log"
    with served(log, **PRIVATE) as url:
        yield url


@pytest.fixture
def stage(clean_database: object, address: str, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A workspace, a key of it in the environment, and senders that may deliver to this machine."""
    stage = Stage()
    for name, value in {"ASSENT_URL": address, "ASSENT_API_KEY": key(stage), **PRIVATE}.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    return stage


@pytest.fixture
def assent(stage: Stage) -> Assent:
    """Run a command. Returns what it printed."""

    def run(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(main, ["webhooks", *words], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result.stdout if code == 0 else result.output

    return run


@pytest.fixture
def listen(stage: Stage, tmp_path: Path) -> Iterator[Listen]:
    """Start `assent webhooks listen`, and wait until it listens. It writes the files `printed` and `log`."""
    processes: list[warm.Process] = []

    def start(*words: str, **env: str) -> warm.Process:
        command = [sys.executable, "-m", "api.cli.main", "webhooks", "listen", *words]
        log = tmp_path / "log"
        with (tmp_path / "printed").open("wb") as output, log.open("wb") as errors:
            process = warm.start(command, os.environ | env, output, errors)
        processes.append(process)
        wait_for("it listens", lambda: "Listening" in log.read_text() or process.poll() is not None, 60)
        assert process.poll() is None, log.read_text()
        return process

    yield start
    for process in processes:
        process.kill()


def endpoints(stage: Stage) -> list[Endpoint]:
    with transaction(stage.workspace_id) as db:
        return db.find(Endpoint, "ORDER BY id")


def test_an_endpoint_is_created_listed_and_tested(assent: Assent, stage: Stage) -> None:
    assert assent("list") == ""
    secret = assent("create", "http://127.0.0.1:1/hook", "--event", "session.created", "--name", "Ops").strip()
    [endpoint] = endpoints(stage)
    assert secret_of(endpoint) == secret
    row = assent("list").splitlines()[1]
    assert row.split() == [endpoint.id, "http://127.0.0.1:1/hook", "Ops", "enabled", "1", "-"]
    assert json.loads(assent("list", "--json"))[0]["id"] == endpoint.id
    sent = assent("test", endpoint.id).splitlines()[1]
    assert "  queued  session.created  sesn_00000000000000000000000000  just now  " in sent
    send_due(stage)
    line = assent("deliveries", endpoint.id, "--status", "queued")
    assert "ConnectError" in line
    assert " (1)  " in line
    assert line.rstrip().endswith("left")
    assert "must be https" in assent("create", "http://example.com/", code=1)
    assert "unknown event" in assent("create", "https://example.com/", "--event", "session.paid", code=1)


def test_one_delivery_or_all_are_sent_again(assent: Assent, stage: Stage) -> None:
    assent("create", "http://127.0.0.1:1/hook")
    [endpoint] = endpoints(stage)
    for _ in range(3):
        assent("test", endpoint.id)
    first, *_others = deliveries(stage)
    with transaction(stage.workspace_id) as db:
        for row in deliveries(stage):
            db.move(row, "running", fence=1, attempt=1)
            db.move(row, "failed")
    assert "queued" in assent("redeliver", endpoint.id, first.id)
    assert assent("redeliver", endpoint.id, "--before", "2020-01-01T00:00:00Z") == "0 deliveries are sent again.\n"
    assert assent("redeliver", endpoint.id, "--status", "failed") == "2 deliveries are sent again.\n"
    assert "either one delivery" in assent("redeliver", endpoint.id, first.id, "--status", "failed", code=2)


def test_listen_prints_what_is_delivered_and_removes_its_endpoint(listen: Listen, stage: Stage, tmp_path: Path) -> None:
    """SIGTERM ends the command, as Ctrl-C does in the next test."""
    process = listen()
    [endpoint] = endpoints(stage)
    assert (endpoint.name, endpoint.enabled_events) == ("assent webhooks listen", sorted(EVENTS))
    session_id = stage.session()
    stage.message(session_id)
    stage.reply(session_id, call())
    send_due(stage)
    assert {delivery.status for delivery in deliveries(stage)} == {"done"}
    count = len(deliveries(stage))
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    printed = (tmp_path / "printed").read_text().splitlines()
    assert len(printed) == count
    assert any(f" session.created {session_id}, whev_" in line for line in printed)
    [approval] = stage.approvals(session_id)
    assert any(f" approval.requested {approval.id} of {session_id}, whev_" in line for line in printed)
    assert endpoints(stage) == []


def test_listen_uses_the_secret_of_an_endpoint_and_refuses_any_other(
    listen: Listen, assent: Assent, stage: Stage, tmp_path: Path
) -> None:
    secret = assent("create", "http://127.0.0.1:1/", "--event", "session.created").strip()
    [endpoint] = endpoints(stage)
    process = listen("--json", ASSENT_WEBHOOK_KEY=secret)
    url = next(word for word in (tmp_path / "log").read_text().split() if word.startswith("http"))
    with transaction(stage.workspace_id) as db:
        db.get_one(Endpoint, endpoint.id, lock=True).change(db, stage.principal, {"url": url})
    session_id = stage.session()
    send_due(stage)
    with transaction(stage.workspace_id) as db:
        row = db.get_one(Endpoint, endpoint.id, lock=True)
        row.regenerate_secret(db, stage.principal)
        row.previous_until = None
    stage.session()
    send_due(stage)
    assert [delivery.status for delivery in deliveries(stage)] == ["done", "queued"]
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    [line] = (tmp_path / "printed").read_text().splitlines()
    assert json.loads(line)["data"]["id"] == session_id
    assert "refused: " in (tmp_path / "log").read_text()
    assert endpoint_now(stage, endpoint).state == "enabled", "only what listen registered is removed"


def test_listen_names_the_setting_that_its_url_needs_at_the_server(assent: Assent) -> None:
    output = assent("listen", "--public-url", "http://10.0.0.1/hook", code=1)
    assert "The server needs ASSENT_ALLOWED_PRIVATE_HOSTS=127.0.0.1" in output
