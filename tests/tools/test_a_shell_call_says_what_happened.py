"""`bash`: output, errors, exit code and directory, told apart and bounded."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from looking import text, until

from workers.tools import execution
from workers.tools.builtin.agent_toolset import AGENT_TOOLSET


def test_output_errors_and_exit_code_are_told_apart(call, each_shell):
    result = call("bash", command="echo out; echo err >&2; exit 3")
    assert [b["text"] for b in result.content] == ["stdout:\nout\n", "stderr:\nerr\n", "exit code: 3\ndirectory: ."]
    assert result.is_error
    assert [b["text"] for b in call("bash", command="true").content] == ["exit code: 0\ndirectory: ."]
    assert not call("bash", command="true").is_error


def test_the_directory_is_kept_for_the_next_call(call, files, each_shell):
    assert text(call("bash", command="mkdir -p a/b && cd a/b")) == "exit code: 0\ndirectory: a/b"
    assert text(call("bash", command="pwd")) == f"stdout:\n{files}/a/b\n\nexit code: 0\ndirectory: a/b"


@pytest.mark.parametrize(
    "command",
    ["cd d; exit 4", "set -e; cd d; false", "set -u; cd d; echo $none", "trap 'echo bye' EXIT; cd d", "set -x; cd d"],
)
def test_the_directory_is_kept_however_the_command_ends(call, files, command):
    (files / "d").mkdir()
    result = call("bash", command=command)
    assert text(result).endswith("\ndirectory: d")
    assert "__status" not in text(result)
    assert "pwd" not in text(result)


def test_a_directory_that_is_gone_or_outside_leads_back_to_the_workdir(call, files):
    call("bash", command="mkdir d; cd d")
    (files / "d").rmdir()
    assert text(call("bash", command="pwd")).startswith(f"stdout:\n{files}\n")
    call("bash", command="mkdir e; cd e")
    call("bash", command="cd /usr")
    assert text(call("bash", command="pwd")).startswith(f"stdout:\n{files}\n")


def test_a_link_to_the_outside_is_no_directory_to_start_in(call, files):
    (files / "out").symlink_to("/usr")
    call("bash", command="cd out")
    assert text(call("bash", command="pwd -P")).startswith(f"stdout:\n{files}\n")


def test_restart_leads_back_to_the_workdir(call, files):
    call("bash", command="mkdir d; cd d")
    assert not call("bash", restart=True).is_error
    assert text(call("bash", command="pwd")).startswith(f"stdout:\n{files}\n")


def test_of_calls_at_the_same_time_the_last_to_end_sets_the_directory(call, files):
    call("bash", command="mkdir a b; mkfifo go")
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(call, "bash", command="cd a; read < ../go")
        call("bash", command="cd b")
        (files / "go").write_text("now")
        slow.result()
    assert text(call("bash", command="pwd")).startswith(f"stdout:\n{files}/a\n")


def test_a_command_may_be_long_and_of_many_lines(call):
    command = "cat <<'E'\n" + "x" * 300_000 + "\nE\necho \"it's\" $'done'"
    result = call("bash", command=command)
    assert not result.is_error
    assert text(result).endswith("it's done\n\nexit code: 0\ndirectory: .")


@pytest.mark.parametrize("command", ["echo 'unclosed", "if", "}", "# only a comment", "cat <<E"])
def test_a_syntax_error_shows_nothing_of_the_wrapper(call, command):
    output = text(call("bash", command=command))
    assert not [word for word in ("trap", "DIRECTORY", "250", "249", "__status", 'eval "') if word in output]


def test_the_shells_first_line_is_the_commands(call):
    assert "line 1: nonsense: command not found" in text(call("bash", command="nonsense"))


def test_standard_input_is_empty(call, each_shell):
    assert text(call("bash", command="cat; wc -c")) == "stdout:\n0\n\nexit code: 0\ndirectory: ."


def test_a_command_that_cannot_be_run_is_refused_in_words(call):
    assert text(call("bash")) == "bash: command is required"
    assert "NUL" in text(call("bash", command="echo \0"))
    assert "Unicode" in text(call("bash", command="echo \ud800"))


def test_a_shell_killed_by_a_signal_has_the_usual_code(call, each_shell):
    assert text(call("bash", command="kill -9 $$")) == "exit code: 137\ndirectory: ."


def test_invalid_utf8_and_control_characters_are_made_visible(call, each_shell):
    result = call("bash", command=r"printf 'caf\351 \000 \033[31mred\r\n \342\200\256'")
    assert text(result) == "stdout:\ncaf\ufffd \\x00 \\x1b[31mred\n \\u202e\nexit code: 0\ndirectory: ."


def test_ten_megabytes_of_output_become_head_and_tail(call, each_shell):
    result = call("bash", command="echo first; head -c 10000000 /dev/zero | tr '\\0' 'x'; echo; echo last; echo e >&2")
    output = text(result)
    assert len(output.encode()) <= 100_000
    assert output.startswith("stdout:\nfirst\nxxx")
    assert "last\n\nstderr:\ne\n\nexit code: 0\ndirectory: ." in output
    assert "bytes left out; read_result with call_id" in output


def test_endless_output_stays_bounded_and_ends_at_the_time_limit(call, each_shell):
    begun = time.monotonic()
    output = text(call("bash", seconds=1, command="yes"))
    assert time.monotonic() - begun < 30
    assert output.startswith("stdout:\ny\ny\n")
    assert output.endswith("timed out after 1 s; its processes were killed\ndirectory: .")


def test_a_call_may_ask_for_less_time_but_not_for_more(call):
    assert "timed out after 0.3 s" in text(call("bash", command="echo begun; sleep 60", timeout_ms=300))
    assert "timed out after 0.5 s" in text(call("bash", seconds=0.5, command="sleep 60", timeout_ms=60_000))


def test_output_can_be_read_while_it_runs(context):
    running, cancelled = context(), threading.Event()
    running.cancelled = cancelled
    tool = AGENT_TOOLSET["bash"]
    with ThreadPoolExecutor(1) as pool:
        result = pool.submit(execution.execute, tool, running, {"command": "echo so far; sleep 60"})
        assert until(running.output.texts) == {"stdout": "so far\n"}
        cancelled.set()
        output = text(result.result())
    assert output == "stdout:\nso far\n\nstderr:\nTerminated\n\ncancelled; its processes were killed\ndirectory: ."


@pytest.mark.parametrize("way", ["trap", "child", "background"])
def test_a_command_gets_sigterm_before_it_is_killed(call, each_shell, way):
    tidy = "trap 'sleep 0.3; echo tidied up; exit' TERM"
    command = {
        "trap": f"{tidy}; echo begun; sleep 60",
        "child": f'bash -c "{tidy}; echo begun; while :; do sleep 0.1; done"; echo went on',
        "background": f'bash -c "{tidy}; echo begun; while :; do sleep 0.1; done" & wait; echo went on',
    }[way]
    for cancelled, how in ((None, "timed out after 1 s"), (threading.Event(), "cancelled")):
        if cancelled:
            threading.Timer(1, cancelled.set).start()
        output = text(call("bash", seconds=60 if cancelled else 1, cancelled=cancelled, command=command))
        assert output.startswith("stdout:\nbegun\ntidied up\n")
        assert output.endswith(f"{how}; its processes were killed\ndirectory: .")
        assert "went on" not in output


def test_a_command_that_ignores_sigterm_is_killed_after_the_grace(call, each_shell, setting):
    setting("shell_grace_seconds", 0.5)
    begun = time.monotonic()
    output = text(call("bash", seconds=0.5, command="trap '' TERM; echo begun; while :; do sleep 1; done; echo went on"))
    assert 1 <= time.monotonic() - begun < 4
    assert output == "stdout:\nbegun\n\ntimed out after 0.5 s; its processes were killed\ndirectory: ."


def test_nothing_of_the_workers_environment_reaches_the_shell(call, each_shell, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("BASH_ENV", "/nonexistent/secret")
    output = text(call("bash", command="env; export -p; cat /proc/self/environ /proc/$PPID/environ"))
    assert "secret" not in output
    names = {line.split("=")[0] for line in text(call("bash", command="env")).split("\n") if "=" in line}
    expected = {"PATH", "HOME", "LANG", "TERM", "PWD", "SHLVL", "_", "CURL_HOME", "WGETRC"}
    assert {name for name in names if not name.startswith("GIT_")} == expected


def test_no_descriptor_of_the_worker_reaches_the_shell(call, files, each_shell):
    with (files.parent / "state" / "secret").open("w"):
        output = text(call("bash", command="ls -l /proc/$$/fd"))
    assert "secret" not in output
    assert "socket" not in output


def test_limits_are_set(call, each_shell):
    output = text(call("bash", command="ulimit -c; ulimit -n; ulimit -f; umask"))
    assert output == "stdout:\n0\n4096\n1048576\n0022\n\nexit code: 0\ndirectory: ."
