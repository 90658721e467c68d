"""Under bubblewrap a shell sees its own files and nothing else; without bubblewrap it does not run."""

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
    assert MISSING in (sandbox.shell_ready() or "")


def test_a_bubblewrap_that_does_not_work_counts_as_missing(call, files, no_bubblewrap):
    (no_bubblewrap / "bwrap").write_text("#!/bin/sh\necho no namespaces >&2; exit 1\n")
    (no_bubblewrap / "bwrap").chmod(0o755)
    assert MISSING in text(call("bash", command="touch ran"))
    assert not list(files.iterdir())


def test_a_bare_shell_is_ready_without_bubblewrap():
    assert sandbox.shell_ready() is None


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
    assert output == "stdout:\n42\n3\n1\n\nexit code: 0"


def test_sessions_are_hidden_even_where_their_parent_folder_is_visible(bubblewrap, root):
    argv, _ = sandbox.wrapped(["/bin/true"], root, root / "files")
    hidden = argv.index(str(root.parent))
    assert argv[hidden - 1] == "--tmpfs"
    assert hidden < argv.index(str(root / "files"))
