"""Under bubblewrap a shell sees its own files and nothing else; without bubblewrap it does not run."""

import os
import socket
from pathlib import Path

import pytest
from looking import text

from workers.tools.sandbox import bubblewrap as sandbox
from workers.tools.sandbox import workdir

MISSING = "bubblewrap (bwrap) is missing or does not work here"


@pytest.fixture
def no_bubblewrap(monkeypatch, tmp_path, setting):
    setting("shell", "bubblewrap")
    monkeypatch.setattr(sandbox, "PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bash").symlink_to("/bin/bash")
    return tmp_path / "bin"


def test_without_bubblewrap_no_shell_runs(call, files, no_bubblewrap):
    result = call("bash", command="touch ran")
    assert result.is_error
    assert MISSING in text(result)
    assert not list(files.iterdir())
    assert MISSING in (sandbox.shell_problem() or "")


def test_a_bubblewrap_that_does_not_work_counts_as_missing(call, files, no_bubblewrap):
    (no_bubblewrap / "bwrap").write_text("#!/bin/sh\necho no namespaces >&2; exit 1\n")
    (no_bubblewrap / "bwrap").chmod(0o755)
    assert MISSING in text(call("bash", command="touch ran"))
    assert not list(files.iterdir())


def test_a_bare_shell_is_ready_without_bubblewrap():
    assert sandbox.shell_problem() is None


def test_a_tools_worker_warns_of_commands_that_share_the_machine_s_ports(setting):
    setting("shell", "bubblewrap")
    assert sandbox.exposure() is None
    for name, value in (("shell_network", "true"), ("shell", "bare")):
        setting(name, value)
        assert "whatever the port" in (sandbox.exposure() or ""), name


def test_production_refuses_a_bare_shell(call, files, setting):
    setting("environment", "production")
    result = call("bash", command="touch ran")
    assert result.is_error
    assert "production refuses it" in text(result)
    assert not (files / "ran").exists()


def test_the_files_are_at_their_own_path(call, files, bubblewrap):
    assert not call("bash", command=f"echo x > {files}/a && cat {files}/a && test $PWD = {files}").is_error
    assert (files / "a").read_text() == "x\n"


def test_state_and_other_sessions_are_not_there(call, root, bubblewrap):
    other = workdir.session_root("sesn_2")
    (other / "files" / "secret").write_text("hidden")
    output = text(call("bash", command=f"ls {root} {root.parent}; cat {other}/files/secret; echo x > {root}/state/x"))
    assert f"{root.parent}:\n{root.name}\n" in output
    assert f"{root}:\nfiles\n" in output
    assert "hidden" not in output
    assert not (root / "state" / "x").exists()


def test_tmp_is_its_own_and_empty(call, bubblewrap):
    call("bash", command="echo x > /tmp/assent-sandbox-test")
    assert not Path("/tmp/assent-sandbox-test").exists()
    assert "assent-sandbox-test" not in text(call("bash", command="ls /tmp"))


def test_home_and_etc_hold_nothing_of_the_machine(call, bubblewrap):
    output = text(call("bash", command="ls -a /root /home /var /opt /work; cat /etc/shadow /etc/passwd; whoami"))
    assert "root:" not in output
    assert output.count("No such file or directory") == 6
    assert "agent\n" in output


def test_the_tools_of_the_system_work(call, bubblewrap):
    output = text(call("bash", command="awk 'BEGIN {print 6*7}'; seq 3 | sort -r | head -1; date > d && cat d | wc -l"))
    assert output == "stdout:\n42\n3\n1\n\nexit code: 0\ndirectory: ."


def test_sessions_are_hidden_even_where_their_parent_folder_is_visible(bubblewrap, root):
    argv, _ = sandbox.wrapped(["/bin/true"], root, root / "files")
    hidden = argv.index(str(root.parent))
    assert argv[hidden - 1] == "--tmpfs"
    assert hidden < argv.index(str(root / "files"))


@pytest.mark.parametrize("place", ["/usr/assent-x", "/etc/assent-x", "/assent-x", "/bin/assent-x", "/proc/sys/kernel/x"])
def test_nothing_outside_can_be_written(call, place, bubblewrap):
    call("bash", command=f"echo x > {place}")
    assert not Path(place).exists()


def test_sysctls_are_read_only_for_root_too(call, bubblewrap):
    output = text(call("bash", command="[ -w /proc/sys/vm/swappiness ] && echo writable; : >> /proc/sys/vm/swappiness"))
    assert "writable" not in output
    assert "exit code: 1" in output


def test_no_other_process_is_seen(call, bubblewrap):
    output = text(call("bash", command="for p in /proc/[0-9]*; do echo $p; done | wc -l; kill -9 -1; kill -0 " + str(os.getpid())))
    assert int(output.split("\n")[1]) < 8 if output.startswith("stdout") else "137" in output


def test_there_is_no_network(call, bubblewrap):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = call("bash", command=f"exec 3<>/dev/tcp/127.0.0.1/{port}")
    assert result.is_error
    assert "efused" in text(result)
    assert "eth" not in text(call("bash", command="cat /proc/net/dev"))


def test_no_capability_and_no_new_namespace(call, bubblewrap):
    assert "CapEff:\t0000000000000000" in text(call("bash", command="cat /proc/self/status"))
    assert call("bash", command="unshare -U true || unshare -m true").is_error
