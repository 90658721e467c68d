"""A server that a worker started is ended when the worker does not renew its lease, and a call is not sent after that."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from mcp_servers.conftest import Caller, text, wait_for

from workers import leash
from workers.tools.output import OutcomeUnknown


@pytest.fixture(autouse=True)
def holds_until(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """Moves the end of this process's leases, which the heartbeat of another test does not. Other tests have no end."""
    extend = leash.extend
    monkeypatch.setattr(leash, "extend", lambda _until: None)
    yield extend
    extend(math.inf)


def test_a_call_that_was_sent_ends_with_its_server(small: Caller, holds_until: Callable[[float], None], tmp_path: Path) -> None:
    assert small.call("pid").content  # it runs
    holds_until(leash.now() + 2)
    started = tmp_path / "started"
    with pytest.raises(OutcomeUnknown, match="was lost"):  # and not: took too long
        small.call("stay", file=str(started))
    wait_for(lambda: not psutil.pid_exists(int(started.read_text())), 5)


def test_a_call_is_not_sent_once_the_lease_has_ended(caller: Caller, holds_until: Callable[[float], None], tmp_path: Path) -> None:
    note = tmp_path / "note"
    holds_until(leash.now() - 0.001)
    assert "the call was not sent" in text(caller.call("note", file=str(note)))
    holds_until(math.inf)
    assert not note.exists()
    caller.call("note", file=str(note))
    assert note.exists()
