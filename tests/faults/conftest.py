"""Two installations while these tests run: workers whose messages go through a carrier, and a plant whose links can be cut."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from crashes.effects import TOOLSET, Ledger, announce_effects
from crashes.hints import forget, use_redis
from crashes.journey import Armed, Journey
from crashes.processes import READY, WORKER, Process, patched_early, running, stand_in
from doors.served import key
from faults.carrier import CARRIED, Carrier
from faults.own_redis import OwnRedis, own_redis
from faults.plant import Crowd, Plant
from faults.proxy import proxied
from faults.shifts import Worker
from own_database import Clock, DatabaseUrls
from rows.stage import Stage
from sqlalchemy import make_url

from models.database import transactions

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests here break something."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.crash)


@pytest.fixture(scope="package")
def fault_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs, workdirs, the Redis's data."""
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="package")
def fault_model(fault_folder: Path) -> Iterator[str]:
    """The stand-in model."""
    with stand_in(fault_folder) as url:
        yield url


@pytest.fixture(scope="package")
def fault_redis(fault_folder: Path) -> Iterator[OwnRedis]:
    """The Redis that tests break."""
    with own_redis(fault_folder) as server:
        yield server


@pytest.fixture(scope="package")
def fault_env(fault_folder: Path, fault_model: str, database_urls: DatabaseUrls) -> dict[str, str]:
    """The environment of every process. Sweeps are quick, so that no test waits long for one."""
    return {
        "ANTHROPIC_API_KEY": "any-key-will-do",
        "ANTHROPIC_BASE_URL": fault_model,
        "DATABASE_URL": database_urls.app,
        "DATABASE_SYSTEM_URL": database_urls.system,
        "DATABASE_OWNER_URL": "",
        "ASSENT_SHELL": "bare",
        "ASSENT_ENVIRONMENT": "development",
        "ASSENT_WORKDIR_ROOT": str(fault_folder / "workdirs"),
        "ASSENT_WATCH_SECONDS": "0.2",
        "ASSENT_SWEEP_SECONDS": "1",
        "ASSENT_REHINT_SECONDS": "1",
        "ASSENT_STREAM_POLL_SECONDS": "0.5",
        "ASSENT_BACKOFF_SECONDS": "0.02",
        "ASSENT_TURNS_IN_FLIGHT": "20",
        "PYTHONWARNINGS": "ignore",
    }


@pytest.fixture(scope="package")
def carried_workers(fault_env: dict[str, str], fault_redis: OwnRedis, fault_folder: Path) -> Iterator[list[Process]]:
    """Workers that read only the queues of the carrier."""
    turns, _, rest = CARRIED.partition(",")
    tools, _, sweeps = rest.partition(",")
    env = fault_env | {"REDIS_URL": fault_redis.url.removesuffix("0") + "1"}
    gevent = [*patched_early(WORKER), "--include", "faults.preload", "-n", "turns@carried"]
    gevent += ["-P", "gevent", "-c", "20", "-Q", f"{turns},{sweeps}"]
    prefork = [*WORKER, "-n", "tools@carried", "-P", "prefork", "-c", "2", "-Q", tools]
    logs = fault_folder / "carried-turns.log", fault_folder / "carried-tools.log"
    with running(gevent, env, logs[0]) as first, running(prefork, env, logs[1]) as second:
        yield [first, second]


@pytest.fixture(scope="package")
def plants() -> list[Plant]:
    """The plant, once a test has needed it."""
    return []


@pytest.fixture
def plant_at_rest(plants: list[Plant]) -> None:
    """The plant's beat does not beat, and nobody sends to its queues."""
    for plant in plants:
        plant.process("beat").suspend()


@pytest.fixture
def carrier(
    plant_at_rest: None,
    clean_database: DatabaseUrls,
    fault_redis: OwnRedis,
    carried_workers: list[Process],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Carrier]:
    """Carries the messages of this process and of the workers to the workers, by a test's rule."""
    from workers import enqueue

    fault_redis.heal()
    url = fault_redis.url.removesuffix("0") + "1"
    monkeypatch.setattr(transactions, "_send", enqueue.send)
    use_redis(monkeypatch, url)
    for worker in carried_workers:
        if worker.running.poll() is not None:
            worker.start()  # Celery's worker ends when its Redis becomes a replica, as it does in another test
        worker.wait_for_output(READY)
    carrier = Carrier(url)
    yield carrier
    carrier.close()
    monkeypatch.undo()
    forget()


@pytest.fixture(scope="package")
def whole_plant(
    fault_env: dict[str, str], fault_redis: OwnRedis, fault_folder: Path, database_urls: DatabaseUrls, plants: list[Plant]
) -> Iterator[Plant]:
    """The Procfile's processes; Redis and the workers' Postgres are reached through links that can be cut."""
    postgres_port = make_url(database_urls.app).port
    assert postgres_port
    with proxied(fault_redis.port) as to_redis, proxied(postgres_port) as to_postgres:
        env = fault_env | {
            "REDIS_URL": fault_redis.url.replace(str(fault_redis.port), str(to_redis.port)),
            "DATABASE_URL": database_urls.app.replace(str(postgres_port), str(to_postgres.port)),
            "DATABASE_SYSTEM_URL": database_urls.system.replace(str(postgres_port), str(to_postgres.port)),
        }
        with Plant(fault_folder, env, fault_redis, to_redis, to_postgres).running() as plant:
            plants.append(plant)
            yield plant
            plants.remove(plant)
            plant.process("beat").resume()


@pytest.fixture
def plant(whole_plant: Plant, clean_database: DatabaseUrls) -> Iterator[Plant]:
    """The plant, healed after the test. Its beat rests between its tests, so that it changes no rows of other tests."""
    whole_plant.process("beat").resume()
    yield whole_plant
    whole_plant.to_redis.heal()
    whole_plant.to_postgres.heal()
    whole_plant.redis.heal()
    whole_plant.process("beat").suspend()


@pytest.fixture
def crowd(plant: Plant, stage: Stage) -> Iterator[Crowd]:
    """Sessions over HTTP."""
    with httpx2.Client(base_url=plant.url, headers={"x-api-key": key(stage)}, timeout=20) as caller:
        yield Crowd(plant, stage, caller)


@pytest.fixture(scope="package")
def shift_env(fault_env: dict[str, str], fault_redis: OwnRedis, fault_folder: Path) -> dict[str, str]:
    """The environment of workers that a test starts, stops and wakes: queues of their own, a toolset, quick heartbeats."""
    return fault_env | {
        "REDIS_URL": fault_redis.url.removesuffix("0") + "2",
        "ASSENT_TOOLSETS": TOOLSET,
        "ASSENT_TEST_EFFECTS": str(fault_folder / "effects"),
        "ASSENT_WATCH_SECONDS": "0.1",
        "ASSENT_HEARTBEAT_SECONDS": "0.5",
    }


@pytest.fixture(scope="package")
def shift(shift_env: dict[str, str], fault_folder: Path) -> Iterator[dict[str, Worker]]:
    """A turns worker, a tools worker, and a worker that takes over from both. The first looks too seldom at its leases."""
    with ExitStack() as stack:
        envs = {"turns": shift_env | {"ASSENT_WATCH_SECONDS": "20"}, "tools": shift_env, "all": shift_env}
        workers = {name: Worker.start(name, env, fault_folder) for name, env in envs.items()}
        for worker in workers.values():
            stack.callback(worker.process.stop)
        for worker in workers.values():
            worker.ready()
        yield workers


@pytest.fixture
def workers(shift: dict[str, Worker]) -> Iterator[dict[str, Worker]]:
    """The shift, in which only the worker that takes over sleeps."""
    for worker in shift.values():
        if worker.process.running.poll() is not None:
            worker.process.start()  # Celery's worker ends when its Redis becomes a replica, as it does in another test
            worker.ready()
    shift["all"].sleep()
    yield shift
    for worker in shift.values():
        worker.wake()


@pytest.fixture
def ledger(clean_database: DatabaseUrls, fault_folder: Path) -> Ledger:
    """The ledger of the toolset's functions. The toolset is announced."""
    announce_effects()
    return Ledger(fault_folder / "effects")


@pytest.fixture
def journeys(
    plant_at_rest: None,
    clean_database: DatabaseUrls,
    clock: Clock,
    fault_redis: OwnRedis,
    shift_env: dict[str, str],
    fault_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[], Journey]]:
    """Makes sessions for the workers of a test, which get the hints. The beat beats in this process."""
    from workers import enqueue

    fault_redis.heal()
    monkeypatch.setattr(transactions, "_send", enqueue.send)
    monkeypatch.setenv("ASSENT_REHINT_SECONDS", "1")
    use_redis(monkeypatch, shift_env["REDIS_URL"])
    stage = Stage()

    def new_journey() -> Journey:
        journey = Journey(stage, clock, Armed(fault_folder / "armed"), fault_folder / "workdirs")
        journey.beats = True
        return journey

    yield new_journey
    monkeypatch.undo()
    forget()
