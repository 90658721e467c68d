"""A toolset that counts its effects outside of Assent, in files of the folder that ASSENT_TEST_EFFECTS names.

A team would write such a toolset, but for the parameter `how`, by which tests have its functions go wrong.
"""

import json
import os
import signal
import time
from pathlib import Path
from typing import Literal

from assent import Context, Toolset

How = Literal["well", "wait before", "wait after", "segfault", "killed", "until told", "stubborn"]
"""The behaviour of a call beside its effect.

wait before, wait after: its first attempt waits at a gate, before its effect or after it
segfault, killed: its process dies after the effect, at every attempt
until told: it goes on until it is cancelled, and returns what it got done
stubborn: it ignores that it is cancelled
"""

effects = Toolset("effects", description="Effects that are counted.")


@effects.tool(effect="write")
def charge(context: Context, how: How = "well") -> str:
    """Take effect at each run."""
    return _run(context, "charge", how)


@effects.tool(effect="write", idempotent=True)
def put(context: Context, how: How = "well") -> str:
    """Take effect once for each key, at the first run."""
    return _run(context, "put", how)


def _run(context: Context, tool: str, how: How) -> str:
    _note(context, "run", tool, how)
    print(f"attempt {context.attempt} of {tool} began", flush=True)  # noqa: T201 - the output of a call that never ends
    if how == "wait before" and context.attempt == 1:
        _wait(context)
    if tool == "charge" or _is_first(context):
        _note(context, "effect", tool, how)
    if how == "wait after" and context.attempt == 1:
        _wait(context)
    if how in {"segfault", "killed"}:
        os.kill(os.getpid(), signal.SIGSEGV if how == "segfault" else signal.SIGKILL)
    while how in {"until told", "stubborn"}:
        if context.cancelled.wait(0.01) and how == "until told":
            return "stopped half-way, as I was told"
        time.sleep(0.01)
    return f"done at attempt {context.attempt}"


def _folder() -> Path:
    return Path(os.environ["ASSENT_TEST_EFFECTS"])


def _note(context: Context, what: str, tool: str, how: str) -> None:
    line = {"what": what, "key": context.call_id, "attempt": context.attempt, "tool": tool, "how": how, "pid": os.getpid()}
    with (_folder() / context.session_id).open("a") as ledger:
        ledger.write(json.dumps(line) + "\n")


def _is_first(context: Context) -> bool:
    try:
        (_folder() / f"key-{context.call_id}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _wait(context: Context) -> None:
    while not (_folder() / f"go-{context.session_id}").exists():
        time.sleep(0.01)
