"""One command runs everything, as the documents say. Each process holds only its secrets, and kill -9 loses nothing.

The tests share one start. The last test, which is slow, kills everything and has an installed wheel start it again.
"""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import click
import httpx2
import psutil
import pytest
import warm
from anthropic import Anthropic
from crashes.processes import lives, wait_for
from local.built import write_foreign_packages
from local.documents import APPROVALS, BUDGET, CREW, OPENAI, PAGES, ROOT, RUN, SDK, Snippet
from people import Visitor

from api.cli.asking import CALL, settle
from api.cli.client import Approval, Inbox, connect
from api.cli.showing import describe, narrate
from deploy.folder import MARK, free_port
from models.settings.variables import PROCESSES

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]

ALL = {*PROCESSES}
ROWS = ALL - {"beat", "flower"}
SERVERS = {"postgres", "redis", "standin"}
ASK = {"type": "agent_toolset_20260401", "default_config": {"permission_policy": {"type": "always_ask"}}}
FOREIGN = {"ORDERS_TOKEN": "hush-orders", "ANTHROPIC_API_KEY": "", "HTTPS_PROXY": "http://hush-proxy"}
"""Variables of the shell that starts everything, among them a secret of a toolset's."""
EACH = "import sys\nfor text in sys.argv[1:]:\n    exec(text, {'__name__': '__main__'})\n    print(end='\\0', flush=True)"
"""A program that runs each of its arguments, and prints a null character after each."""


class Up:
    """A data folder and its `assent up`. `content` is the JSON of `up.json`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / ".assent"
        self.log = folder / "log"
        self.port = free_port()

    def start(self, command: list[str]) -> None:
        """Start by this command of the checkout, and wait until everything is ready."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("DATABASE", "REDIS", "ANTHROPIC", "ASSENT"))}
        self._start(command, ROOT, env | FOREIGN)

    def start_installed(self, program: Path) -> None:
        """Start by an installed `assent`, in a folder with foreign packages of our names, without an environment."""
        write_foreign_packages(self.folder.parent)
        self._start([str(program), "up", "--port", str(self.port)], self.folder.parent, {})

    def _start(self, command: list[str], folder: Path, env: dict[str, str]) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        ready = self.folder / "up.json"
        old_pid = self.content["pid"] if ready.exists() else None  # a killed `assent up` leaves the file behind

        def is_ready() -> bool:
            return self.process.poll() is not None or (ready.exists() and self.content["pid"] != old_pid)

        wait_for("everything is ready", is_ready, 180)
        assert self.process.poll() is None, self.log.read_text()[-3000:]

    @property
    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "up.json").read_text())
        return content

    def marked(self) -> list[psutil.Process]:
        """Every process of this folder."""
        processes = []
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == str(self.folder):
                    processes.append(process)
        return processes

    def environments(self) -> dict[str, list[str]]:
        """The environments of each process and of its descendants, by the name of the process."""
        texts: dict[str, list[str]] = {}
        for name, pid in self.content["processes"].items():
            process = psutil.Process(pid)
            for relative in (process, *process.children(recursive=True)):
                with suppress(psutil.Error, OSError):
                    texts.setdefault(name, []).append(Path(f"/proc/{relative.pid}/environ").read_text("utf-8", "replace"))
        return texts

    def kill_everything(self) -> None:
        """kill -9, the supervisor first, so that it starts nothing again."""
        supervisor = psutil.Process(self.content["pid"])
        for process in [supervisor, *supervisor.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Everything embedded, started by the README's first command on a port and in a folder of its own."""
    running = Up(tmp_path_factory.mktemp("up"))
    try:
        running.start([*RUN.split(), f"ARGS=--port {running.port} --data-dir {running.folder}"])
        yield running
    finally:
        if running.process.poll() is None:
            if (running.folder / "up.json").exists():
                running.kill_everything()
            else:
                running.process.terminate()
                running.process.wait(30)


@pytest.fixture
def client(up: Up) -> Iterator[Anthropic]:
    """The official SDK with the first API key."""
    with Anthropic(base_url=up.content["url"], api_key=up.content["api_key"]) as sdk:
        yield sdk


def ask_a_person(client: Anthropic, command: str) -> str:
    """Start a session whose shell command waits for a decision. Returns the session's id."""
    agent = client.beta.agents.create(name="Janitor", model="claude-opus-5-5", tools=[ASK])  # type: ignore[list-item]
    environment = client.beta.environments.list().data[0]
    session = client.beta.sessions.create(agent=agent.id, environment_id=environment.id, title="Sweep")
    text = f"call bash {json.dumps({'command': command})}"
    message: Any = {"type": "user.message", "content": [{"type": "text", "text": text}]}
    with client.beta.sessions.events.stream(session.id) as stream:
        client.beta.sessions.events.send(session.id, events=[message])
        assert any(event.type == "session.status_idle" for event in stream)
    return session.id


def outputs(env: dict[str, str], *snippets: Snippet) -> list[str]:
    """The output of each of these Python snippets, run one after the other in one process."""
    done = warm.run("-c", EACH, *(snippet.text for snippet in snippets), **env)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\0")[:-1]


def pending(up: Up) -> list[Approval]:
    with closing(connect(up.folder).http) as http:
        return Inbox(http).listed("/v1/approvals", status="pending")


def test_each_secret_is_in_the_environments_of_its_processes_alone(up: Up) -> None:
    environments, content = up.environments(), up.content
    assert set(environments) == ALL | SERVERS
    titled = {"postgres", "redis"}  # they write a title over their environment
    own = {name: texts[0] for name, texts in environments.items() if name not in titled}
    assert [name for name, text in own.items() if f"{MARK}={up.folder}" not in text] == []
    holding = {
        content["database_url"]: ROWS,
        content["database_system_url"]: {"sweeps"},
        content["database_owner_url"]: set(),
        (up.folder / "audit.key").read_text().strip(): set(),
        str(up.folder / "audit.key"): {"sweeps"},
        (up.folder / "deliver.key").read_text().strip(): {"deliver"},
        (up.folder / "turns.key").read_text().strip(): {"turns"},
        "ASSENT_DELIVER_PUBLIC_KEY=": ALL,
        content["redis_url"]: ALL,
        "ANTHROPIC_API_KEY=": {"turns"},
        "ANTHROPIC_BASE_URL=": {"turns"},
        content["flower_password"]: {"flower"},
        content["api_key"]: set(),
        "hush-orders": {"tools"},
        "hush-proxy": {"turns", "tools"},
        "DATABASE_OWNER_URL": set(),
    }
    for secret, processes in holding.items():
        assert {name for name, texts in environments.items() if any(secret in text for text in texts)} == processes, secret
    assert (up.folder / "up.json").stat().st_mode & 0o777 == 0o600


def test_the_start_says_how_far_it_is_and_the_sample_reads_as_a_person_wrote_it(up: Up, client: Anthropic) -> None:
    before, banner, _after = click.unstyle(up.log.read_text()).partition("Assent is up.")
    assert banner
    for part in ("the API", "Flower", "the workers", "the sample session"):
        assert re.search(rf"\b{part}: ready after \d+\.\d s", before), part
    [session] = [one for one in client.beta.sessions.list() if (one.title or "").startswith("A sample")]
    [message] = [event for event in client.beta.sessions.events.list(session.id) if event.type == "user.message"]
    assert [block.text for block in message.content if block.type == "text"] == [
        "Please look around in your working directory, and tell me what you see."
    ]


def test_the_commands_and_the_python_snippets_decide_real_approvals(up: Up, client: Anthropic) -> None:
    """The sample session's approval by the command line, all others by the snippets, in the order of the pages."""
    env = os.environ | {"ASSENT_URL": up.content["url"], "ASSENT_API_KEY": up.content["api_key"]}
    [sample] = pending(up)
    assert any("ls -la" in line for line in describe(sample))
    decided = subprocess.run(
        APPROVALS.split(), cwd=ROOT, env=env, input="1\n", capture_output=True, text=True, timeout=60, check=True
    )
    assert "Run shell command: " in decided.stdout
    assert "Decided." in decided.stdout
    assert "exit code: 0" in decided.stdout
    assert "✓ done" in decided.stdout
    for key in ("a allow", "d deny", "e edit", "j next", "? all"):
        assert f"`{key[0]}`" in PAGES["README.md"]
        assert key in decided.stdout
    first, *others = SDK
    assert first.page == "README.md"
    output, budget = outputs(env, first, BUDGET)
    assert "wants to run bash" in output
    assert "got stdout:\nswept" in output
    assert budget == "2500\n"
    for snippet in others:
        ask_a_person(client, f"echo for {snippet}")
        assert f"echo for {snippet}" in outputs(env, snippet)[0]
    [output] = outputs(env, CREW)
    assert "Coordinator › Writer wants to write {'content': '12 EUR', 'file_path': 'offer.md'}" in output
    for report in ("Researcher reports: I have looked.", "Writer reports: I have written."):
        assert report in output
    [output] = outputs(env, OPENAI)
    assert "I am the stand-in model" in output
    assert output.endswith("And good-bye.")
    assert pending(up) == []


def test_the_sign_in_link_opens_the_inbox_and_a_call_allowed_there_runs(up: Up, client: Anthropic) -> None:
    content = up.content
    assert content["sign_in_url"].startswith(f"http://localhost:{up.port}/sign-in/link/")
    assert content["inbox_url"] == f"{content['public_url']}/inbox"
    session_id = ask_a_person(client, "echo $((6 * 7)) brooms")
    with Visitor(content["public_url"]) as browser:
        assert browser.submit(content["sign_in_url"], name="Anna").status_code == 303
        row = re.search(r'<a class="title" href="(/inbox/approvals/\w+)">[^\n]*brooms', browser.get(content["inbox_url"]).text)
        assert row
        digest = re.search(r'name="sha256" value="(\w+)"', browser.get(row[1]).text)
        assert digest
        assert browser.submit(row[1], f"{row[1]}/decision", do="allow", sha256=digest[1]).status_code == 303
        assert "Allowed by Anna" in browser.get(row[1]).text
        wait_for("the call's result", lambda: "42 brooms" in browser.get(f"{content['inbox_url']}/sessions/{session_id}").text)


def allowed(up: Up, session_id: str) -> str:
    """Allow the session's call once by the command line's means, and return the lines of its result. The run ends."""
    with closing(connect(up.folder).http) as http:
        inbox = Inbox(http)
        [approval] = [
            approval for approval in inbox.listed("/v1/approvals", status="pending") if approval["session_id"] == session_id
        ]
        decision = CALL["1"][1]
        assert decision
        lines = list(settle(inbox, approval, decision))
        lines += [line for event in inbox.follow(session_id).until_idle() for line in narrate(event)]
    assert lines[0] == "Decided."
    assert click.unstyle(lines[-1]) == "✓ done"
    return "\n".join(line for line in lines if line.startswith("result: "))


@pytest.mark.slow
def test_decided_and_waiting_approvals_survive_kill_9_of_everything(up: Up, client: Anthropic, program: Path) -> None:
    """What was allowed afterwards runs in the processes of an installed wheel."""
    first, waited = up.content, pending(up)
    decided = ask_a_person(client, "echo decided")
    assert "exit code: 0" in allowed(up, decided)
    waits = ask_a_person(client, "pwd")
    waiting = pending(up)
    assert len(waiting) == len(waited) + 1

    up.kill_everything()
    up.start_installed(program)

    again = up.content
    for name in ALL:
        process = psutil.Process(again["processes"][name])
        assert process.cmdline()[0] == str(program.with_name("python")), name
        assert Path(process.cwd()).is_relative_to(program.parents[1]), name
    assert again["api_key"] == first["api_key"]
    assert again["sign_in_url"] != first["sign_in_url"]
    assert again["database_url"] == first["database_url"]
    assert pending(up) == waiting  # and no second sample, which only an empty folder gets
    assert client.beta.sessions.retrieve(decided).status == "idle"
    assert f"{up.folder}/workdirs/" in allowed(up, waits)
    with Visitor(again["public_url"]) as browser:
        assert browser.submit(again["sign_in_url"], name="Anna").status_code == 303
        assert "admin@localhost, admin in default" in browser.get("/inbox/account").text
    flower = (again["flower_user"], again["flower_password"])
    assert httpx2.get(again["flower_url"], auth=flower).status_code == 200
    assert httpx2.get(again["flower_url"]).status_code == 401

    web = again["processes"]["web"]
    os.kill(web, signal.SIGKILL)
    wait_for("another web process is started", lambda: up.content["processes"].get("web", web) != web)
    wait_for("the API is back", lambda: answers(f"{again['url']}/readyz"), 60)

    up.process.send_signal(signal.SIGTERM)
    assert up.process.wait(30) == 0
    assert not (up.folder / "up.json").exists()
    assert up.marked() == []
    assert not any(lives(pid) for pid in first["processes"].values())


def answers(url: str) -> bool:
    """True if a GET succeeds."""
    try:
        return httpx2.get(url).is_success
    except httpx2.HTTPError:
        return False
