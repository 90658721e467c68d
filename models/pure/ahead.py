"""Costly calculations and slow reads of a transaction, which are done while no transaction is open.

A transaction holds locks and is never interrupted. So a calculation whose cost somebody else chose may take at most `SECONDS` in
it. Beyond that, `Needed` ends the transaction, the calculation is done, and the transaction starts anew with its result:
`models.database.transactions.transact` does so. A result is looked up by the calculation's arguments, so it is never stale.

A long calculation outside of transactions takes `Pauses`, in which the process serves its other requests.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

SECONDS = 0.02
"""CPU time of one calculation in a transaction."""
_WORK_SECONDS = 0.01
_PAUSE_SECONDS = _WORK_SECONDS / 10
"""Not zero: gevent serves its sockets only during a real pause."""

_results: ContextVar[Mapping[str, Any] | None] = ContextVar("results", default=None)
_is_limited: ContextVar[bool] = ContextVar("is_limited", default=False)


class CalculationTooLong(BaseException):
    """The calculation takes too long for a transaction. No `except Exception` on its way may end that."""


class Needed(BaseException):
    """The transaction needs the result of a costly calculation. Ends the transaction, whatever catches exceptions in it."""

    def __init__(self, key: str, calculate: Callable[[], Any]) -> None:
        super().__init__("A costly calculation was called in a transaction that was not opened by `transact`.")
        self.key, self.calculate = key, calculate


@contextmanager
def use_results(results: Mapping[str, Any]) -> Iterator[None]:
    """Limit the calculations in this block to `SECONDS`, but for those whose results are known."""
    before = _results.set(results)
    try:
        yield
    finally:
        _results.reset(before)


def outside(key: str, calculate: Callable[[], T]) -> T:
    """Return the result of what must not run in a transaction at all, such as a read over the network. `key` names it.

    Raises Needed the first time: `transact` then rolls back, calculates, and starts anew.
    """
    results = _results.get()
    if results is None or key not in results:
        raise Needed(key, calculate)
    result: T = results[key]
    return result


def costly(function: Callable[P, T]) -> Callable[P, T]:
    """Declare a costly calculation. Its arguments are JSON values, and it calls `limited` or `require` while it takes its time."""

    @wraps(function)
    def calculation(*arguments: P.args, **more: P.kwargs) -> T:
        results = _results.get()
        if results is None:
            return function(*arguments, **more)
        key = json.dumps([function.__module__, function.__qualname__, arguments, more])
        if key in results:
            result: T = results[key]
            return result
        before = _is_limited.set(True)
        try:
            return function(*arguments, **more)
        except CalculationTooLong:
            raise Needed(key, partial(function, *arguments, **more)) from None
        finally:
            _is_limited.reset(before)

    return calculation


def limited(seconds: float) -> float:
    """Return how many of these seconds the present calculation may take."""
    return min(seconds, SECONDS) if _is_limited.get() else seconds


def require(seconds: float) -> None:
    """Raise CalculationTooLong if the present calculation may not take as long."""
    if limited(seconds) < seconds:
        raise CalculationTooLong


class Pauses:
    """The pauses of one calculation, which begins now."""

    def __init__(self) -> None:
        self._worked_since = time.monotonic()

    def pause_if_due(self) -> None:
        """Pause if the calculation has worked for 10 ms since the last pause."""
        if time.monotonic() - self._worked_since > _WORK_SECONDS:
            time.sleep(_PAUSE_SECONDS)
            self._worked_since = time.monotonic()
