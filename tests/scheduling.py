"""Which test process runs which tests, and in which order.

A file runs in one process, so that its fixtures start once. So does a folder whose tests share a whole installation, and half of
the files that need a browser. What takes longest begins first, so that no process is left alone with it at the end.
"""

import zlib

import pytest
from xdist.scheduler import LoadFileScheduling

TOGETHER = ("tests/faults/", "tests/crashes/", "tests/whole/", "tests/mcp_servers/")
"""Folders whose tests share workers, a stand-in model or MCP servers, which take seconds of CPU time to start."""
IN_A_BROWSER = (
    "tests/inbox/",
    "tests/doors/test_people_sign_in_with_passkeys.py",
    "tests/doors/test_people_try_requests_in_the_reference.py",
)
"""Folders and files whose tests open pages in a browser."""
BROWSERS = 2
"""The number of processes for them. Each starts a browser and windows of its own, which take seconds of CPU time, too."""
LONGEST = (
    "local/test_an_installed_wheel_starts.py",
    "local/test_assent_up_runs_everything.py",
    "faults",
    "crashes",
    "whole",
    "inbox",
    "mcp_servers",
    "wire",
    "local",
    "tools",
    "doors",
    "streams",
    "outbox",
)
"""Files and folders in the order in which they begin. All others follow."""


def place(item: pytest.Item) -> int:
    """Return the place of a test in the order."""
    return next((place for place, name in enumerate(LONGEST) if item.nodeid.startswith(f"tests/{name}")), len(LONGEST))


class Scheduling(LoadFileScheduling):
    """`--dist loadfile`, but for the folders that stay together. pytest-xdist has no other way to say so that keeps a test's id."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(IN_A_BROWSER):
            file = nodeid.partition("::")[0]
            return f"browser {zlib.crc32(file.encode()) % BROWSERS}"
        return next((folder for folder in TOGETHER if nodeid.startswith(folder)), super()._split_scope(nodeid))
