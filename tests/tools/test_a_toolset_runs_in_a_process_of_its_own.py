"""Functions of a toolset run in a process beside the worker. It is kept, killed and replaced, and its end never ends the worker."""

import json
import logging
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from crashes import processes
from looking import alive, text, until
from written import Caller, House

from api.cli.main import main
from assent import ToolError
from models.settings import settings
from workers.tools.output import OutcomeUnknown
from workers.tools.python import child, running

TOOLS = """
    import ctypes, logging, os, resource, signal, subprocess, sys, time
    from pathlib import Path

    print("imported")
    kit = Toolset("kit")

    @kit.tool(effect="read")
    def who() -> dict:
        "Who runs it."
        return {"pid": os.getpid(), "name": __name__, "core": resource.getrlimit(resource.RLIMIT_CORE)[0]}

    @kit.tool(effect="read")
    def variable(name: str) -> str | None:
        "A variable."
        return os.environ.get(name)

    @kit.tool(effect="read")
    def stdin() -> str:
        "All of standard input."
        return sys.stdin.read()

    @kit.tool(effect="write")
    def say(out: str, err: str = "", wait_for: str = "") -> str:
        "Say it."
        print(out)
        print(err, file=sys.stderr)
        subprocess.run(["sh", "-c", "echo by a child; sleep 0.2"])
        while wait_for and not Path(wait_for).exists():
            time.sleep(0.01)
        return "said"

    @kit.tool(effect="write")
    def flood(size: int) -> str:
        "Print a lot, of what a protocol could mistake for its own."
        os.write(1, bytes(range(256)) * 4)
        sys.stdout.write('{"returned": {"content": []}}' * size)
        return "done"

    @kit.tool(effect="write")
    def tell(text: str, context: Context) -> None:
        "Log."
        context.log.info(text)
        logging.getLogger("elsewhere").warning("also")

    @kit.tool(effect="write")
    def fail(how: str) -> str:
        "End otherwise than by returning."
        match how:
            case "raise":
                raise KeyError("secret")
            case "refuse":
                raise ToolError("not today")
            case "sys.exit":
                sys.exit("secret")
            case "os._exit":
                os._exit(0)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "segfault":
                ctypes.string_at(0)
            case "fork":
                if os.fork() == 0:
                    return "from the fork"
                os.wait()
                return "from the runner"
            case "close outputs":
                os.close(1), os.close(2)
                return "closed"
            case "close all":
                os.closerange(3, 5000)
                return "closed"
            case "babble":
                for fd in range(3, 5000):
                    try:
                        os.write(fd, b"z" * 1000)
                    except OSError:
                        pass
                time.sleep(60)
            case "too long":
                return "x" * 40_000_000
            case "half":
                return "a\\ud800b"
        return "?"

    @kit.tool(effect="write")
    def linger(mark: str, stubborn: bool = True, holding: bool = False, context: Context = None) -> str:
        "Wait, with processes that wait, too."
        subprocess.Popen(["sleep", mark])
        subprocess.Popen(["setsid", "sleep", mark])
        if holding:
            ctypes.PyDLL(None).sleep(3600)  # holds the interpreter's lock
        while stubborn or not context.cancelled.is_set():
            time.sleep(0.01)
        return "ended early"

    @kit.tool(effect="write")
    def behind(mark: str) -> str:
        "Leave something running."
        subprocess.Popen(["sleep", mark])
        return "left"

    @kit.tool(effect="write", workdir=True)
    def keep(name: str, context: Context) -> str:
        "Write a file."
        (context.workdir / name).write_text(context.call_id)
        return os.getcwd()
"""


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    """The toolset, named in the setting; its folder and its entries."""
    with pytest.MonkeyPatch.context() as patch:
        house = House(tmp_path_factory.mktemp("theirs"), patch)
        patch.syspath_prepend(str(house.folder))
        house.write("their_kit", TOOLS)
        house.name("their_kit:kit")
        toolsets, problems = running.describe()
        assert problems == []
        yield house.folder, {entry["name"]: entry for entry in toolsets["kit"]}
        running.end_idle()


@pytest.fixture
def kit(described, context):
    """Calls its tools, in a runner that earlier tests may have used."""
    return Caller(described[1], "kit", context)


@pytest.fixture
def fresh_kit(kit):
    """The same, but the first call starts a runner."""
    running.end_idle()
    return kit


@pytest.fixture
def changing(house, context):
    """A toolset whose file a test changes."""
    house.write("changing", TOOLS.replace("kit", "changing"))
    house.name("changing:changing")
    toolsets, problems = running.describe()
    assert problems == []
    return Caller({entry["name"]: entry for entry in toolsets["changing"]}, "changing", context)


@pytest.fixture
def aside():
    """Calls a function in a thread: `aside(f)` returns a future."""
    with ThreadPoolExecutor(8) as pool:
        yield pool.submit


def who(kit):
    return kit("who").structured


def runners(spec):
    """Return the ids of this process's own runners of one toolset. Workers of other tests may have more."""
    return alive(f" {spec}", psutil.Process().children(recursive=True))


def test_calls_run_in_one_process_beside_the_worker(kit):
    first, second = who(kit), who(kit)
    assert first == second
    assert first["pid"] not in (os.getpid(), os.getppid())
    assert "their_kit" not in sys.modules


def test_the_process_writes_no_core_dump(kit):
    assert who(kit)["core"] == 0


def test_functions_have_the_workers_environment_without_its_secrets(fresh_kit, monkeypatch):
    secrets = ("DATABASE_URL", "DATABASE_SYSTEM_URL", "DATABASE_OWNER_URL", "REDIS_URL", "ANTHROPIC_API_KEY")
    secrets += ("ASSENT_AUDIT_KEY", "ASSENT_AUDIT_KEY_FILE", "FLOWER_BASIC_AUTH")
    for name in ("THEIR_DATABASE", *secrets):
        monkeypatch.setenv(name, "value")
    assert text(fresh_kit("variable", name="THEIR_DATABASE")) == "value"
    assert {name: text(fresh_kit("variable", name=name)) for name in secrets} == dict.fromkeys(secrets, "(nothing)")


def test_standard_input_is_empty(kit):
    assert text(kit("stdin")) == "(nothing)"


def test_printed_output_can_be_read_during_and_after_the_call(kit, context, tmp_path, aside):
    own_context = context()
    call = aside(kit, "say", own_context, out="hello", err="world", wait_for=str(tmp_path / "go"))
    until(lambda: "by a child" in own_context.output.texts().get("stdout", ""))
    assert not call.done()
    (tmp_path / "go").touch()
    assert text(call.result(60)) == "said"
    assert own_context.output.texts() == {"stdout": "hello\nby a child\n", "stderr": "world\n"}


def test_a_call_has_its_own_output_only(kit, context):
    kit("say", out="one")
    own_context = context()
    kit("say", own_context, out="two")
    assert "one" not in own_context.output.texts()["stdout"]
    assert "imported" not in own_context.output.texts()["stdout"]


def test_printing_cannot_be_taken_for_the_protocol(kit, context):
    own_context = context()
    assert text(kit("flood", own_context, size=50_000)) == "done"
    assert own_context.output.texts()["stdout"].count('"returned"') > 1000


def test_log_lines_are_in_the_workers_log(kit, caplog):
    caplog.set_level(logging.INFO)
    kit("tell", text="counted")
    assert "toolset.kit: counted [sevt_call]" in caplog.messages
    assert "elsewhere: also [sevt_call]" in caplog.messages


@pytest.mark.parametrize(("how", "name"), [("raise", "KeyError"), ("sys.exit", "SystemExit")])
def test_an_exception_is_reported_by_its_type_alone(kit, caplog, how, name):
    result = kit("fail", how=how)
    assert (result.is_error, text(result)) == (True, f"fail: failed inside ({name})")
    assert name in caplog.text
    assert "secret" not in caplog.text


def test_a_listener_gets_the_traceback(kit):
    tracebacks = []
    tool = running.toolset_tool("kit", kit.entries["fail"], tracebacks.append)
    tool.run(kit.context(), {"how": "raise"})
    assert "KeyError: 'secret'" in tracebacks[0]
    assert "their_kit.py" in tracebacks[0]


def test_a_refusal_is_a_tool_error(kit):
    with pytest.raises(ToolError, match="not today"):
        kit("fail", how="refuse")


@pytest.mark.parametrize("how", ["os._exit", "kill", "segfault", "close all", "babble"])
def test_a_process_that_dies_leaves_the_outcome_unknown_and_the_next_call_works(kit, how):
    before, started = who(kit)["pid"], time.monotonic()
    with pytest.raises(OutcomeUnknown):
        kit("fail", how=how)
    assert time.monotonic() < started + 20, "only the time limit ended it"
    assert not psutil.pid_exists(before)
    assert who(kit)["pid"] != before


@pytest.mark.parametrize(
    ("how", "says"), [("fork", "from the runner"), ("close outputs", "closed"), ("half", "a\ud800b"), ("too long", None)]
)
def test_a_function_that_forks_or_closes_its_outputs_or_returns_odd_text_still_returns(kit, how, says):
    result = kit("fail", how=how)
    assert text(result) == (says or "it ran to its end, but its return value is too long (40000082 bytes)")
    assert result.is_error is (how == "too long")
    assert who(kit)
    running.end_idle()  # it may have no outputs any more


@pytest.mark.parametrize("holding", [False, True], ids=["", "holding-the-lock"])
def test_a_function_is_killed_at_its_time_limit_with_all_that_it_started(kit, context, mark, holding):
    with pytest.raises(OutcomeUnknown):
        kit("linger", context(seconds=0.5), mark=mark, holding=holding)
    assert alive(mark) == []
    assert who(kit)


def test_a_function_sees_a_cancel_and_may_return_early(kit, context, mark, aside):
    before = who(kit)["pid"]
    cancelled = threading.Event()
    call = aside(kit, "linger", context(cancelled=cancelled), mark=mark, stubborn=False)
    until(lambda: len(alive(mark)) >= 2)
    cancelled.set()
    assert text(call.result(60)) == "ended early"
    assert who(kit)["pid"] == before


def test_a_function_that_ignores_a_cancel_is_killed(kit, context, mark, aside, monkeypatch):
    monkeypatch.setattr(child, "CANCEL_SECONDS", 0.2)
    cancelled = threading.Event()
    call = aside(kit, "linger", context(cancelled=cancelled), mark=mark)
    until(lambda: len(alive(mark)) >= 2)
    cancelled.set()
    with pytest.raises(OutcomeUnknown):
        call.result(60)
    assert alive(mark) == []


def test_an_interrupted_worker_leaves_nothing_running(kit, mark):
    class SoftLimit(Exception):
        pass

    def interrupt(*_):
        raise SoftLimit

    before = signal.signal(signal.SIGUSR1, interrupt)
    watcher = threading.Thread(target=lambda: until(lambda: len(alive(mark)) >= 2) and os.kill(os.getpid(), signal.SIGUSR1))
    watcher.start()
    try:
        with pytest.raises(OutcomeUnknown, match="the worker was interrupted"):
            kit("linger", mark=mark)
    finally:
        watcher.join()
        signal.signal(signal.SIGUSR1, before)
    assert alive(mark) == []


def test_a_keeper_that_dies_leaves_the_outcome_unknown_and_no_runner(kit, tmp_path, aside):
    runner = psutil.Process(who(kit)["pid"])
    call = aside(kit, "say", out="x", wait_for=str(tmp_path / "never"))
    until(runner.children)
    runner.parent().kill()
    with pytest.raises(OutcomeUnknown, match="its keeper died"):
        call.result(20)
    until(lambda: not runner.is_running())
    assert who(kit)


def test_a_call_that_is_cancelled_before_its_start_does_not_begin(kit, context):
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(ToolError, match="cancelled before it began"):
        kit("say", context(cancelled=cancelled), out="a")


def test_processes_that_a_function_leaves_end_with_the_toolsets_process(kit, mark):
    kit("behind", mark=mark)
    until(lambda: len(alive(mark)) == 1)  # a program's command line is there a moment after it was started
    running.end_idle()
    assert alive(mark) == []


def test_an_idle_process_ends_and_the_next_call_starts_another(fresh_kit, monkeypatch):
    monkeypatch.setattr(child, "IDLE_SECONDS", 0.1)
    before = who(fresh_kit)["pid"]
    until(lambda: not psutil.pid_exists(before))
    assert who(fresh_kit)["pid"] != before


def test_a_process_that_died_between_two_calls_is_replaced(kit):
    before = who(kit)["pid"]
    os.kill(before, signal.SIGKILL)
    assert who(kit)["pid"] != before


def test_calls_of_several_threads_run_at_the_same_time(fresh_kit, tmp_path, aside):
    calls = [aside(fresh_kit, "say", out="x", wait_for=str(tmp_path / "go")) for _ in range(3)]
    until(lambda: len(runners("their_kit:kit")) == 3)
    (tmp_path / "go").touch()
    assert [text(call.result(60)) for call in calls] == ["said"] * 3


def test_a_forked_worker_has_a_process_of_its_own_and_leaves_its_parents_alone(kit):
    before = who(kit)["pid"]
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(theirs, str(who(kit)["pid"]).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        in_the_fork = int(pipe.read())
    assert in_the_fork != before
    assert who(kit)["pid"] == before
    until(lambda: not psutil.pid_exists(in_the_fork))


def test_a_tool_with_workdir_writes_to_the_sessions_files(kit, context, files):
    where = text(kit("keep", context(), name="a.txt"))
    assert (files / "a.txt").read_text() == "sevt_call"
    assert where == str(Path.cwd())


def test_the_operator_can_choose_the_current_folder_of_toolsets(fresh_kit, context, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSENT_TOOLSET_FOLDER", str(tmp_path))
    settings.cache_clear()
    assert text(fresh_kit("keep", context(), name="a.txt")) == str(tmp_path)
    settings.cache_clear()
    running.end_idle()


def test_a_toolset_that_cannot_start_is_an_error_not_an_unknown_outcome(house, changing, caplog):
    house.write("changing", "raise RuntimeError('no database')")
    with pytest.raises(ToolError, match="its process cannot be started; the worker's log says why"):
        changing("who")
    assert "cannot be imported (RuntimeError: no database)" in caplog.text


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [("def who()", "def someone()", "is gone"), ('(effect="read")\n    def who', '(effect="write")\n    def who', "has changed")],
    ids=["gone", "changed"],
)
def test_a_tool_whose_code_changed_since_the_listing_does_not_run(house, fresh_kit, changing, before, after, says):
    house.write("changing", TOOLS.replace("kit", "changing").replace(before, after))
    with pytest.raises(ToolError, match=f"its code {says} since the worker listed it"):
        changing("who")
    assert runners("changing:changing") == []


def test_an_unknown_toolset_is_an_error(kit):
    with pytest.raises(ToolError, match="this worker has no toolset 'other'"):
        running.toolset_tool("other", kit.entries["who"]).run(kit.context(), {})


def test_the_command_line_says_that_the_outcome_is_unknown(kit):
    result = CliRunner().invoke(main, ["tools", "call", "kit.fail", '{"how": "os._exit"}', "--yes"])
    assert result.exit_code == 2
    assert "the outcome is unknown: its process ended before the call did (exit code 0)" in result.output


COUNTED = """
    print("imported", file=open("FILE", "a"))
    counted = Toolset("counted")

    @counted.tool(effect="read")
    def look() -> str:
        "Look."
        return "seen"
"""


def test_the_command_line_lists_and_calls_in_one_process_and_leaves_none(house):
    imports = house.folder / "imports"
    house.write("counted", COUNTED.replace("FILE", str(imports)))
    house.name("counted:counted")
    assert CliRunner().invoke(main, ["tools", "call", "counted.look"]).output == "seen\n"
    assert imports.read_text() == "imported\n"
    assert CliRunner().invoke(main, ["tools", "call", "counted.look", "[]"]).exit_code == 1
    assert runners("counted:counted") == []


WORKER = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from workers.tools.kinds import ToolContext
from workers.tools.python import running
entry = next(entry for entry in running.describe()[0]["kit"] if entry["name"] == "linger")
tool = running.toolset_tool("kit", entry)
with ThreadPoolExecutor(2) as threads:
    for fields in json.loads(Path(sys.argv[1]).read_text()):
        threads.submit(tool.run, ToolContext("sevt_1", "sesn_1", Path("/tmp"), 60), fields)
"""


@pytest.mark.crash
def test_all_is_dead_after_the_workers_death(described, mark, tmp_path):
    """Of its two functions one holds the lock of its interpreter."""
    # Its input by a file: in its command line, it and each fork of it would look like what the tool has started.
    orders = tmp_path / "orders.json"
    orders.write_text(json.dumps([{"mark": mark, "holding": holding} for holding in (False, True)]))
    words, env = [sys.executable, "-c", WORKER, str(orders)], {"PYTHONPATH": str(described[0])}
    with processes.running(words, env, tmp_path / "log") as worker:
        until(lambda: len(alive(mark)) == 4, 60)
        below = psutil.Process(worker.running.pid).children(recursive=True)
        assert len(below) >= 8
        worker.running.kill()
        worker.running.wait()
    until(lambda: not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in below))
