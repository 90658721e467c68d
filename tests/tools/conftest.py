"""Fixtures of tests of tools: a workdir root and a session per test, and calls of tools in the session."""

import platform
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import end_all
from looking import SECRET, text
from written import House

from models.settings import settings
from workers.tools import execution
from workers.tools.builtin.agent_toolset import AGENT_TOOLSET
from workers.tools.kinds import ToolContext, ToolResult
from workers.tools.python import running
from workers.tools.sandbox import bubblewrap as sandbox
from workers.tools.sandbox import syscalls, workdir


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ASSENT_WORKDIR_ROOT", str(tmp_path / "workdirs"))
    monkeypatch.setenv("ASSENT_SHELL", "bare")
    monkeypatch.setenv("ASSENT_ENVIRONMENT", "development")
    settings.cache_clear()
    sandbox._options.cache_clear()
    yield
    settings.cache_clear()
    sandbox._options.cache_clear()


@pytest.fixture(autouse=True)
def _no_worker_left() -> Iterator[None]:
    yield
    end_all()


@pytest.fixture
def root() -> Path:
    """The session's own folder."""
    return workdir.session_root("sesn_1")


@pytest.fixture
def files(root: Path) -> Path:
    """The session's files."""
    return root / "files"


@pytest.fixture
def context(root: Path) -> Callable[..., ToolContext]:
    """Makes the context of a call."""

    def make(seconds: float = 30, cancelled: threading.Event | None = None) -> ToolContext:
        return ToolContext("sevt_call", "sesn_1", root, seconds, cancelled=cancelled or threading.Event())

    return make


@pytest.fixture
def call(context: Callable[..., ToolContext]) -> Callable[..., ToolResult]:
    """Calls a tool by name: `call("read", file_path="a")`."""

    def run(name: str, seconds: float = 30, cancelled: threading.Event | None = None, **fields: Any) -> ToolResult:
        tool = AGENT_TOOLSET[name]
        assert tool is not None
        return execution.execute(tool, context(seconds, cancelled), fields)

    return run


@pytest.fixture
def bubblewrap(setting: Callable[..., None]) -> None:
    """Shells run under bubblewrap, as in production. Skips the test, with a reason, where bubblewrap does not work."""
    setting("shell", "bubblewrap")
    if problem := sandbox.shell_problem():
        pytest.skip(f"NOT TESTED, the sandbox: {problem}")


@pytest.fixture(params=["bare", "bubblewrap"])
def each_shell(request: pytest.FixtureRequest) -> str:
    """The test runs once without a sandbox and once under bubblewrap."""
    if request.param == "bubblewrap":
        request.getfixturevalue("bubblewrap")
    return str(request.param)


@pytest.fixture
def setting(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Changes a setting: `setting("shell_network", "true")`."""

    def change(name: str, value: Any) -> None:
        monkeypatch.setenv(f"ASSENT_{name.upper()}", str(value))
        settings.cache_clear()

    return change


@pytest.fixture
def perl(call: Callable[..., ToolResult]) -> Callable[..., str]:
    """Runs a line of Perl in the shell and returns the text for the model. Perl can make any system call."""
    if call("bash", command="command -v perl").is_error:
        pytest.skip("NOT TESTED, system calls: there is no perl")

    def run(line: str, **changes: Any) -> str:
        return text(call("bash", command=f"perl -MSocket -e '$| = 1; {line}'", **changes))

    return run


@pytest.fixture
def system_calls() -> dict[str, int]:
    """The numbers of this machine's system calls, by name."""
    numbers = syscalls._NUMBERS.get(platform.machine())
    if numbers is None:
        pytest.skip(f"NOT TESTED, system calls: unknown on {platform.machine()}")
    return numbers[1]


@pytest.fixture
def shell(call: Callable[..., ToolResult]) -> Callable[[str], str]:
    """Runs a shell command in the workdir and returns its output."""

    def run(command: str) -> str:
        output = text(call("bash", command=f"{{ {command}; }} 2>&1"))
        return output.split("\n\nexit code")[0].removeprefix("stdout:\n").strip()

    return run


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file outside of the session."""
    file = tmp_path / "outside" / "secret"
    file.parent.mkdir()
    file.write_text(SECRET)
    return file


@pytest.fixture
def mark() -> str:
    """Seconds of sleep that nobody else sleeps: marks a test's own processes in their command lines."""
    return f"98{time.time_ns() % 10**9:09}"


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    """A folder on the module path, for somebody's toolsets."""
    monkeypatch.syspath_prepend(str(tmp_path / "theirs"))
    monkeypatch.delenv("ASSENT_TOOLSETS", raising=False)
    yield House(tmp_path / "theirs", monkeypatch)
    running.end_idle()
    settings.cache_clear()
