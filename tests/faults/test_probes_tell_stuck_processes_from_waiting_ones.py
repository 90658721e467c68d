"""A probe fails for a process whose loop is stuck, and for no process that only waits for Redis."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from crashes.processes import Process, running, wait_for
from faults.own_redis import OwnRedis, own_redis
from kombu import Connection
from kombu.asynchronous import Hub
from own_database import DatabaseUrls

from deploy import health
from deploy.folder import free_port
from deploy.procfile import lines
from models.settings import settings
from models.settings.variables import environment_of
from workers import liveness
from workers.celery import app
from workers.sweeps.scheduler import Scheduler

TRANSPORT = "workers.patches.kombu_redis_client:Transport"
LINES = lines()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the files of this process, which is a turns worker."""
    monkeypatch.setenv("ASSENT_PROBE_FOLDER", str(tmp_path))
    monkeypatch.setattr(liveness, "_EVERY_SECONDS", 0.0)
    settings.cache_clear()
    liveness.begin("turns")
    yield tmp_path
    monkeypatch.undo()
    settings.cache_clear()
    liveness.begin()


def probe(question: str, name: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The result of `assent-health`."""
    words = [Path(sys.executable).with_name("assent-health"), question, name]
    env = {"ASSENT_PROBE_FOLDER": str(folder), **env}
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False)


def ages(files: dict[str, Path]) -> dict[str, float]:
    """Seconds since each process last renewed its file."""
    return {name: time.time() - file.stat().st_mtime for name, file in files.items()}


def renewed(folder: Path) -> bool:
    """True if the file was renewed since the last call."""
    path = folder / "turns.alive"
    with suppress(FileNotFoundError):
        path.unlink()
        return True
    return False


def test_start_liveness_and_readiness_are_told_apart(folder: Path) -> None:
    assert "turns has not begun" in probe("alive", "turns", folder).stderr
    liveness.alive()
    assert probe("alive", "turns", folder).returncode == 0
    assert "turns takes no work yet" in probe("ready", "turns", folder).stderr
    liveness.ready()
    assert probe("ready", "turns", folder).returncode == 0
    past = time.time() - health.OLDEST_SECONDS - 5
    os.utime(folder / "turns.alive", (past, past))
    for question in ("alive", "ready"):
        done = probe(question, "turns", folder)
        assert (done.returncode, "turns is stuck" in done.stderr) == (1, True)


def test_a_new_start_is_neither_alive_nor_ready_by_the_files_of_an_earlier_one(folder: Path) -> None:
    liveness.alive()
    liveness.ready()
    liveness.begin("turns")
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_one_clear_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("ASSENT_PROBE_FOLDER", str(folder / "file" / "probes"))
    settings.cache_clear()
    with pytest.raises(SystemExit, match=r"ASSENT_PROBE_FOLDER: .* cannot be written"):
        liveness.begin("turns")


def test_a_question_that_the_probe_does_not_know_is_refused(tmp_path: Path) -> None:
    assert probe("alive", "turns", tmp_path, ASSENT_PROBE_FOLDER="").stderr.startswith(
        "assent-health: ASSENT_PROBE_FOLDER is not set"
    )
    assert probe("alive", "nobody", tmp_path).returncode == 2


def test_the_probe_of_web_reads_its_health(tmp_path: Path) -> None:
    port = str(free_port())
    assert "web does not respond" in probe("alive", "web", tmp_path, PORT=port).stderr


def test_a_loop_that_waits_for_a_silent_redis_is_alive(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://127.0.0.1:{silent.getsockname()[1]}/0"
        options = {"socket_timeout": 0.05, "socket_connect_timeout": 1, "max_retries": 0}
        attempts: list[bool] = []
        with Connection(url, transport=TRANSPORT, transport_options=options) as connection, suppress(Exception):
            connection.ensure_connection(lambda *_: attempts.append(renewed(folder)), 2, 0.01, 0.01)
    assert attempts == [True, True]


def test_each_round_of_a_worker_s_loop_shows_that_it_runs(folder: Path, clean_redis: str) -> None:
    with Connection(clean_redis, transport=TRANSPORT) as connection:
        connection.SimpleQueue("turns")
        renewed(folder)
        with suppress(TimeoutError):
            connection.drain_events(timeout=0.01)
        assert renewed(folder)
        hub = Hub()
        connection.register_with_event_loop(hub)
        for tick in hub.on_tick & {liveness.alive}:
            tick()
        assert renewed(folder)
        hub.close()


def test_each_round_of_the_beat_shows_that_it_runs(folder: Path, clean_redis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Scheduler(app=app, lazy=True)
    monkeypatch.setattr(scheduler, "data", {})
    scheduler.tick()
    assert (folder / "turns.alive").exists()
    assert (folder / "turns.ready").exists()


def test_neither_a_thread_nor_a_fork_of_a_stuck_process_shows_life(folder: Path) -> None:
    thread = threading.Thread(target=liveness.alive)
    thread.start()
    thread.join()
    assert not renewed(folder)
    child = os.fork()
    if not child:
        liveness.alive()
        liveness.connects()
        os._exit(0)
    os.waitpid(child, 0)
    assert not renewed(folder)


def test_systemd_hears_of_the_start_and_of_each_sign_of_life(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        liveness.alive()
        liveness.ready()
        assert [systemd.recv(100), systemd.recv(100)] == [b"WATCHDOG=1", b"READY=1"]


@pytest.fixture(scope="module")
def frozen_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnRedis]:
    """A Redis that a test may freeze."""
    with own_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server
        server.process.running.send_signal(signal.SIGCONT)


@pytest.fixture
def processes(database_urls: DatabaseUrls, frozen_redis: OwnRedis, tmp_path: Path) -> Iterator[dict[str, Process]]:
    """Every process of the Procfile but `web`, with the environment that it gets in production."""
    bin_folder = str(Path(sys.executable).parent)
    env = {"PATH": f"{bin_folder}:/usr/bin:/bin", "HOME": str(tmp_path), "REDIS_URL": frozen_redis.url, "LOG_LEVEL": "info"}
    env |= {"DATABASE_URL": database_urls.app, "DATABASE_SYSTEM_URL": database_urls.system, "ANTHROPIC_API_KEY": "none"}
    env |= {
        "ASSENT_PROBE_FOLDER": str(tmp_path),
        "FLOWER_BASIC_AUTH": "a:b",
        "FLOWER_PORT": str(free_port()),
        "TOOLS_CONCURRENCY": "1",
    }
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                running(["/bin/sh", "-c", f"exec {line}"], environment_of(name, env), tmp_path / f"{name}.log")
            )
            for name, line in LINES.items()
            if name != "web"
        }


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_process_lives_on_while_redis_is_frozen_and_none_while_it_is_stuck_itself(
    processes: dict[str, Process], frozen_redis: OwnRedis, tmp_path: Path
) -> None:
    for name, process in processes.items():
        wait_for(f"{name} is ready", lambda name=name: probe("ready", name, tmp_path).returncode == 0, 90)
        assert process.running.poll() is None, process.log.read_text()
    frozen_redis.process.running.send_signal(signal.SIGSTOP)
    frozen = time.monotonic()
    files = {name: tmp_path / f"{name}.alive" for name in processes}

    def all_live_on() -> bool:
        """All processes are alive, and each has shown so long after Redis fell silent."""
        now = ages(files)
        assert max(now.values()) < health.OLDEST_SECONDS, now
        return max(now.values()) < time.monotonic() - frozen - 40

    wait_for("all have shown life", all_live_on, 120)
    for name in processes:
        assert probe("alive", name, tmp_path).returncode == 0
    for process in processes.values():
        process.running.send_signal(signal.SIGSTOP)
    wait_for("all files grow old", lambda: min(ages(files).values()) > 3, 30)
