"""A worker that is frozen past its lease has no more effect, neither while it is frozen nor after it wakes."""

import contextlib
import fcntl
import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import psutil
import pytest
from forked import start_worker
from looking import alive, text, until
from written import Caller, House

from workers import leash
from workers.leash import lease
from workers.leash.programs import processes
from workers.tools.kinds import ToolContext
from workers.tools.output import OutcomeUnknown
from workers.tools.python import running

pytestmark = [pytest.mark.crash]

LEASE = 3.0
START_SECONDS = 40
"""A worker imports for seconds where many tests run at once."""
WAITS = "until [ -e go ]; do sleep 0.01; done; echo effect >> effects"


SLOW = """
    import time
    from pathlib import Path
    kit = Toolset("kit")

    @kit.tool(effect="write")
    def act(begun: str, go: str, effect: str) -> str:
        "Wait, and have an effect."
        Path(begun).touch()
        while not Path(go).exists():
            time.sleep(0.01)
        Path(effect).touch()
        return "acted"
"""


@pytest.fixture(autouse=True)
def holds_until(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """Moves the end of this process's leases, which the heartbeat of another test does not. Other tests have no end."""
    extend = leash.extend
    monkeypatch.setattr(leash, "extend", lambda _until: None)
    yield extend
    extend(math.inf)


def shell_worker(mark: str) -> ForkServerProcess:
    """Start a worker, never renewing its lease, that runs a command and a detached one. Both commands wait for a file."""
    waits = f"bash -c '{WAITS}' {mark}"
    process = start_worker(("bash", {"command": f"(setsid {waits} &); {waits}"}), lease_seconds=LEASE)
    until(lambda: len(alive(mark)) >= 2, START_SECONDS)
    return process


def wake(process: ForkServerProcess) -> None:
    """Let a frozen worker go on to its end."""
    with contextlib.suppress(ProcessLookupError):  # `wake_tree` may have woken it, and it has ended
        os.kill(process.pid, signal.SIGCONT)
    process.join(10)
    assert process.exitcode == 0


def frozen_shell(files: Path, mark: str, freeze: Callable[[int], None]) -> None:
    """Freeze a worker and its command past the lease, make the file that the command waits for, and wake the worker."""
    process = shell_worker(mark)
    freeze(process.pid)
    until(lambda: not alive(mark), seconds=LEASE + 5)
    (files / "go").touch()
    wake(process)
    assert not (files / "effects").exists()


def test_a_command_is_killed_when_the_lease_of_its_frozen_worker_ends(files: Path, each_shell: str, mark: str) -> None:
    """The whole process group of the worker is frozen."""
    frozen_shell(files, mark, lambda pid: os.killpg(pid, signal.SIGSTOP))


def stop_tree(pid: int) -> list[psutil.Process]:
    """Stop a process and all that is below it, its keepers among them. Returns the stopped processes."""
    top = psutil.Process(pid)
    top.suspend()  # first, so that it starts no more
    stopped = [top, *top.children(recursive=True)]
    for process in stopped[1:]:
        with contextlib.suppress(psutil.NoSuchProcess):  # a `sleep` that is over
            process.suspend()
    assert alive("import keeper;", stopped)
    return stopped


def wake_tree(stopped: list[psutil.Process]) -> None:
    """Resume the processes, the deepest first, so that a command has a head start on its keeper."""
    for process in reversed(stopped):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()


def test_a_command_that_is_frozen_with_its_keeper_and_its_worker_has_no_effect_when_all_wake(
    files: Path, each_shell: str, mark: str
) -> None:
    """Without a process outside of the tree, the command would be faster than its keeper."""
    process = shell_worker(mark)
    started = leash.now()
    stopped = stop_tree(process.pid)
    (files / "go").touch()
    until(lambda: leash.now() > started + LEASE + 0.5)
    wake_tree(stopped)
    wake(process)
    assert not (files / "effects").exists()


def sentinel_of(worker: int) -> psutil.Process:
    """The sentinel of a process that has started a keeper."""
    keeper = next(child for child in psutil.Process(worker).children() if "import keeper;" in " ".join(child.cmdline()))
    marked = alive(keeper.cmdline()[-1])
    [pid] = [one for one in marked if "import sentinel;" in " ".join(psutil.Process(one).cmdline())]
    return psutil.Process(pid)


def test_a_workers_death_ends_a_command_that_is_frozen_with_its_keeper(files: Path, mark: str) -> None:
    """Its sentinel is none of its children, nor of its group or session, and ends after it."""
    process = shell_worker(mark)
    stopped = stop_tree(process.pid)
    sentinel = sentinel_of(process.pid)
    assert sentinel not in stopped
    for one in stopped:
        with contextlib.suppress(ProcessLookupError):  # a `sleep` that is over
            assert os.getsid(one.pid) != os.getsid(sentinel.pid)
    process.kill()
    process.join()
    until(lambda: all(processes.is_dead(one.pid) for one in [*stopped, sentinel]))
    assert not (files / "effects").exists()


@pytest.mark.parametrize("by", ["call", "heartbeat"])
def test_a_sentinel_that_was_killed_is_replaced_at_the_next_call_or_heartbeat(call, by: str, holds_until) -> None:
    def sentinels() -> list[int]:
        return [one for one in alive("import sentinel;") if ours in psutil.Process(one).cmdline()]

    call("bash", command="true")
    ours = lease.mark()
    [first] = sentinels()
    os.kill(first, signal.SIGKILL)
    until(lambda: first not in alive("import sentinel;"))
    if by == "call":
        call("bash", command="true")
    else:
        holds_until(leash.now() + 60)
    [second] = until(sentinels)
    assert second != first


def test_a_frozen_command_is_killed_too_when_the_lease_of_its_frozen_worker_ends(files: Path, mark: str) -> None:
    def freeze(pid: int) -> None:
        for frozen in [pid, *alive(mark)]:
            os.kill(frozen, signal.SIGSTOP)

    frozen_shell(files, mark, freeze)


def test_a_frozen_worker_writes_no_file_when_it_wakes(files: Path, root: Path) -> None:
    """The worker waits for the lock of another write and would get the lock next."""
    with (root / "state" / "files.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = start_worker(("write", {"file_path": "a", "content": "effect"}), lease_seconds=LEASE)
        opened = str(root / "state" / "files.lock")
        until(lambda: opened in {file.path for file in psutil.Process(process.pid).open_files()}, START_SECONDS)
        ends = leash.now() + LEASE
        os.kill(process.pid, signal.SIGSTOP)
        until(lambda: leash.now() > ends)
    wake(process)
    assert not list(files.iterdir())


@pytest.mark.parametrize(
    ("tool", "fields"),
    [
        ("bash", {"command": "echo effect > effects"}),
        ("write", {"file_path": "effects", "content": "effect"}),
        ("edit", {"file_path": "kept", "old_string": "kept", "new_string": "effect"}),
    ],
)
def test_nothing_begins_once_the_lease_has_ended(call, files: Path, tool: str, fields: dict[str, str], holds_until) -> None:
    (files / "kept").write_text("kept")
    holds_until(leash.now() - 0.001)
    result = call(tool, **fields)
    assert result.is_error
    assert "did not renew its lease" in text(result)
    assert [(file.name, file.read_text()) for file in files.iterdir()] == [("kept", "kept")]


def test_a_keeper_that_starts_too_late_starts_nothing(call, files: Path, monkeypatch: pytest.MonkeyPatch, holds_until) -> None:
    """The worker was frozen between its own look at the lease and its order."""
    monkeypatch.setattr(ToolContext, "require_lease", lambda _context: None)
    holds_until(leash.now() - 0.001)
    assert "did not renew its lease" in text(call("bash", command="echo effect > effects"))
    assert not list(files.iterdir())


def test_a_command_goes_on_while_the_lease_is_renewed(call, files: Path, holds_until) -> None:
    holds_until(leash.now() + 1)
    done = threading.Event()

    def renew() -> None:
        while not done.wait(0.05):
            holds_until(leash.now() + 1)

    threading.Thread(target=renew).start()
    result = call("bash", command="sleep 2; echo effect")
    done.set()
    assert "effect" in text(result)


def test_a_function_of_a_toolset_is_killed_with_the_lease_and_the_next_call_finds_another(
    context: Callable[..., ToolContext], holds_until: Callable[[float], None], house: House, tmp_path: Path
) -> None:
    house.write("slow", SLOW)
    house.name("slow:kit")
    act = Caller({entry["name"]: entry for entry in running.describe()[0]["kit"]}, "kit", context)
    paths = {name: str(tmp_path / name) for name in ("begun", "go", "effect")}
    (tmp_path / "go").touch()
    assert "acted" in text(act("act", **paths)), "its process is there"
    for path in paths.values():
        Path(path).unlink()
    holds_until(leash.now() + LEASE)
    with pytest.raises(OutcomeUnknown, match="did not renew its lease"):
        act("act", **paths)
    assert (tmp_path / "begun").exists()
    (tmp_path / "go").touch()
    assert not (tmp_path / "effect").exists()
    holds_until(math.inf)
    assert "acted" in text(act("act", **paths))
