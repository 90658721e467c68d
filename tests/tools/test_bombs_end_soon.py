"""Processes, memory and files without number: a command that makes too many is ended, with a sentence, before others suffer."""

import contextlib
import platform
import time

import psutil
import pytest
from looking import text

pytestmark = pytest.mark.usefixtures("bubblewrap")


def in_session(files):
    """Return the ids of the living processes of a session's commands."""
    pids = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("HOME") == str(files) and process.status() != psutil.STATUS_ZOMBIE:
                pids.append(process.pid)
    return pids


def test_a_fork_bomb_ends_soon(call, files, setting):
    setting("shell_processes", 64)
    begun = time.monotonic()
    output = text(call("bash", command="bomb() { bomb & bomb & wait; }; bomb"))
    assert "ended: it had more than the 64 processes and threads that it may; its processes were killed" in output
    assert time.monotonic() - begun < 15
    assert in_session(files) == []


def test_memory_is_counted_over_all_processes(perl, setting):
    setting("shell_memory_bytes", 128 << 20)
    output = perl('$n = 30_000_000; for (1..6) { fork or do { $x = "x" x $n; sleep 60 } } wait for 1..6')
    assert "bytes of memory, more than the 134217728 that it may" in output


def test_memory_that_is_shared_after_a_fork_counts_once(call, setting):
    setting("shell_memory_bytes", 128 << 20)
    result = call(
        "bash", command='x=$(head -c 30000000 /dev/zero | tr "\\0" x); for i in 1 2 3 4 5 6; do sleep 1 & done; (sleep 1; :) & wait'
    )
    assert not result.is_error


def test_one_process_gets_no_more_memory_than_all(perl, setting):
    setting("shell_memory_bytes", 128 << 20)
    assert "Out of memory" in perl('$x = "x" x 500_000_000; print length $x')


def test_files_in_memory_that_have_no_name_are_counted(perl, setting):
    number = {"x86_64": 319, "aarch64": 279}.get(platform.machine())
    if number is None:
        pytest.skip(f"NOT TESTED, system calls: unknown on {platform.machine()}")
    setting("shell_memory_bytes", 128 << 20)
    fill = f'$f = syscall({number}, $n, 0); open($h[$_], ">&=$f"); syswrite($h[$_], $x)'
    output = perl(f'$n = "x"; $x = "x" x 40_000_000; for (1 .. 6) {{ {fill} }} sleep 60')
    assert "bytes of memory, more than" in output


def test_shared_memory_that_no_process_holds_is_small(perl, system_calls):
    get = system_calls["shmget"]
    assert "1\n" in perl(f'print syscall({get}, 0, 65536, 0x3ff) >= 0, "\\n"')
    for size in (65537, 1 << 32):
        assert "-1 1\n" in perl(f'print syscall({get}, 0, {size}, 0x3ff), " ", $! + 0, "\\n"')


def test_temporary_files_without_a_byte_are_counted(call, setting):
    setting("workdir_files", 500)
    output = text(call("bash", command="cd /tmp; for ((i = 0; ; i++)); do : > $i; done"))
    assert "ended: its files in /tmp and /dev/shm were" in output
