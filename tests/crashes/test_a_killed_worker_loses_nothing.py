"""Kill -9 of whole workers that run as in production: turns on gevent, tools on processes."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from crashes.hints import use_redis
from crashes.journey import Armed, Journey, bash
from crashes.processes import READY, TOOLS, TURNS, Process, running, wait_for
from own_database import Clock, DatabaseUrls
from rows.stage import Stage


@pytest.fixture(scope="module")
def own_env(worker_env: dict[str, str], private_redis: str) -> dict[str, str]:
    """The environment of workers that no other test shares."""
    return worker_env | {"REDIS_URL": private_redis}


@pytest.fixture(scope="module")
def turns(own_env: dict[str, str], crash_folder: Path) -> Iterator[Process]:
    """A gevent worker for turns."""
    with running([*TURNS, "--include", "crashes.points"], own_env, crash_folder / "turns.log") as worker:
        yield worker


@pytest.fixture(scope="module")
def tools(own_env: dict[str, str], crash_folder: Path) -> Iterator[Process]:
    """A prefork worker for tools."""
    with running(TOOLS, own_env, crash_folder / "tools.log") as worker:
        yield worker


@pytest.fixture
def stage(
    clean_database: DatabaseUrls, turns: Process, tools: Process, private_redis: str, hints_go_to: pytest.MonkeyPatch
) -> Stage:
    """A workspace whose hints go to these workers."""
    use_redis(hints_go_to, private_redis)
    for worker in (turns, tools):
        if worker.running.poll() is not None:  # another test has killed it
            worker.start()
        worker.wait_for_output(READY)
    return Stage()


@pytest.fixture
def journeys(stage: Stage, clock: Clock, armed: Armed, crash_folder: Path) -> list[Journey]:
    """Several conversations at once."""
    return [Journey(stage, clock, armed, crash_folder / "workdirs") for _ in range(5)]


def test_turns_in_flight_survive_their_worker(journeys: list[Journey], turns: Process, armed: Armed) -> None:
    """Kill -9 while four replies are being written, and a fifth is written but not stored."""
    *others, first = journeys
    for number, journey in enumerate(others):
        journey.begin().say(f"Session {number}", "say 90 tokens at 60/s", "say Done.")
    for journey in others:
        journey.until(lambda seen: seen.turns[0].status == "running")
    armed.at("model.after")
    first.begin().say("say Done.")
    wait_for("the worker dies", lambda: turns.running.poll() is not None)
    assert all(journey.look().turns[0].status == "running" for journey in journeys)
    turns.start()
    turns.wait_for_output(READY)
    first.later()
    for journey in journeys:
        journey.beats = True
        seen = journey.until_idle()
        assert seen.session.stop_reason == {"type": "end_turn"}
        assert [(t.attempt, t.losses) for t in seen.turns] == [(2, 1)]
        assert len(seen.of("agent.message")) == 1


def test_a_shell_dies_with_its_worker_and_a_person_settles_it(journeys: list[Journey], tools: Process) -> None:
    """Kill -9 of a whole tools worker while a command runs. No process of it goes on, and the outcome is unknown."""
    journey = journeys[0].begin(bash="always_allow")
    journey.say(bash("(setsid sleep 61 &) ; echo effect >> effects; sleep 60"), "then", "say Done.")
    wait_for("the command runs", lambda: journey.effects() and len(sleeping(tools)) >= 2)
    sleepers = sleeping(tools)
    tools.kill()
    wait_for("its processes are dead", lambda: not any(process.is_running() for process in sleepers), seconds=5)
    journey.later()
    unknown = journey.until_asked("unknown_outcome")
    assert "never reported its end" in unknown.prompt
    journey.settle_unknown()
    seen = journey.until_idle()
    assert journey.effects() == 1
    assert len(seen.attempts) == 1


def sleeping(worker: Process) -> list[psutil.Process]:
    """The `sleep` processes that tools have started."""
    return [process for process in worker.family if process.name() == "sleep"]
