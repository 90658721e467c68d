"""Calls at the same moment, each in a thread of its own."""

import threading
from collections.abc import Callable
from typing import Any


def together(*acts: Callable[[], Any]) -> list[Any]:
    """Start all acts at the same moment. Returns the result or exception of each, in their order."""
    outcomes: list[Any] = [None] * len(acts)
    gate = threading.Barrier(len(acts))

    def play(number: int, act: Callable[[], Any]) -> None:
        gate.wait()
        try:
            outcomes[number] = act()
        except Exception as error:  # noqa: BLE001 - the test checks it
            outcomes[number] = error

    threads = [threading.Thread(target=play, args=item, daemon=True) for item in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "an act hangs"
    return outcomes


def of_kind(outcomes: list[Any], kind: type) -> list[Any]:
    """The outcomes of a type."""
    return [outcome for outcome in outcomes if isinstance(outcome, kind)]
