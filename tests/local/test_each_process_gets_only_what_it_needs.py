"""Each process has the secrets that it needs in its environment, and no others.

`test_assent_up_runs_everything.py` looks into the running processes.
"""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import warm
from local.lines import command

from deploy.folder import free_port
from deploy.procfile import ROOT
from models.settings import Settings, settings, variables
from models.settings.variables import PROCESSES, environment_of, holders, refuse_needless
from workers.celery import check_worker

ALL = {*PROCESSES}
PROGRAMS = ("web", "turns", "beat", "flower")
"""A process for each program that the Procfile names. The other workers differ from `turns` in their queue alone."""


def test_each_secret_setting_is_in_the_table_of_private_variables() -> None:
    """A variable that is not in the table goes to every process."""
    for name, field in Settings.model_fields.items():
        variable = variables.names_of_settings()[name]
        if "Secret" in str(field.annotation) or variable.endswith("_URL"):
            assert any(variables.fits(variable, pattern) for pattern in variables.PRIVATE), variable


def test_an_unknown_variable_goes_to_the_tools_alone() -> None:
    assert holders("GITHUB_TOKEN") == ("tools",)
    assert holders("ASSENT_ORDERS_TOKEN") == ("tools",)
    assert set(holders("PATH")) == set(holders("ASSENT_MAX_TURNS")) == ALL
    assert environment_of("postgres", {"PATH": "/bin", "REDIS_URL": "r", "ASSENT_MAX_TURNS": "1"}) == {"PATH": "/bin"}


def test_the_documentation_names_the_same_processes_for_each_variable() -> None:
    """Operators of another supervisor need the list."""
    text = (ROOT / "docs/operation.md").read_text()
    rows = dict(re.findall(r"^\| `([A-Z_]+)` \| ([a-z, ]+?)(?:;.*)? \|$", text, re.MULTILINE))
    assert len(rows) > 10
    for variable, processes in rows.items():
        assert holders(variable) == (() if processes == "none" else tuple(processes.split(", "))), variable
    assert re.findall(r"^\| `([a-z]+)` \| .* \| .* \|$", text, re.MULTILINE) == list(PROCESSES)


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Gives this process these variables and no other secrets."""

    def hold_only(environment: str, **values: str) -> None:
        for name in list(os.environ):
            if name.startswith(("DATABASE", "ANTHROPIC", "ASSENT_AUDIT")) or name.endswith("_PRIVATE_KEYS"):
                monkeypatch.delenv(name)
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("ASSENT_ENVIRONMENT", environment)
        settings.cache_clear()

    return hold_only


@pytest.mark.parametrize(
    ("process", "variable", "line"),
    [
        ("web", "DATABASE_SYSTEM_URL", "only sweeps may have it"),
        ("turns", "DATABASE_SYSTEM_URL", "only sweeps may have it"),
        ("tools", "ANTHROPIC_API_KEY", "only turns may have it"),
        ("web", "ASSENT_AUDIT_KEY_FILE", "only sweeps may have it"),
        ("sweeps", "DATABASE_OWNER_URL", "no running process may have it"),
        ("beat", "DATABASE_URL", "only deliver and sweeps and tools and turns and web may have it"),
        ("flower", "ANTHROPIC_API_KEY", "only turns may have it"),
    ],
)
def test_in_production_no_process_starts_with_another_s_secret(
    hold: Callable[..., None], process: str, variable: str, line: str
) -> None:
    hold("production", **{variable: "hush"})
    with pytest.raises(SystemExit) as refused:
        refuse_needless(process)
    message = str(refused.value)
    assert message.startswith(f"assent: {variable}: {process} must not hold this: {line}")
    assert "hush" not in message
    assert "\n" not in message


@pytest.mark.timeout(120)
def test_each_program_of_the_procfile_refuses_a_secret_of_another(redis_url: str, tmp_path: Path) -> None:
    """One process of each program, all at once, with a secret that no process may have."""
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path), "REDIS_URL": redis_url}
    env |= {"DATABASE_OWNER_URL": "hush", "FLOWER_BASIC_AUTH": "a:b", "PORT": str(free_port()), "FLOWER_PORT": str(free_port())}
    processes = {}
    try:
        for name in PROGRAMS:
            with (tmp_path / name).open("wb") as log:
                processes[name] = warm.start(command(name, **env), env, log)
        for name, process in processes.items():
            assert process.wait(100) != 0, name
            refusal = f"assent: DATABASE_OWNER_URL: {name} must not hold this: no running process may have it"
            assert refusal in (tmp_path / name).read_text()
    finally:
        for process in processes.values():
            process.kill()


@pytest.mark.parametrize("queue", ["turns", "tools", "tools.orders", "sweeps", "deliver"])
def test_a_worker_s_queue_says_which_secrets_it_may_hold(hold: Callable[..., None], queue: str) -> None:
    worker = SimpleNamespace(app=SimpleNamespace(amqp=SimpleNamespace(queues=SimpleNamespace(consume_from={queue: None}))))
    hold("production", DATABASE_OWNER_URL="hush")
    with pytest.raises(SystemExit, match=f"DATABASE_OWNER_URL: {queue.partition('.')[0]} must not hold this"):
        check_worker(instance=worker)


def test_elsewhere_a_secret_of_another_process_is_a_warning(hold: Callable[..., None], caplog: pytest.LogCaptureFixture) -> None:
    hold("development", DATABASE_SYSTEM_URL="hush")
    refuse_needless("web")
    assert "DATABASE_SYSTEM_URL: web must not hold this" in caplog.text


def test_a_process_with_its_own_secrets_starts(hold: Callable[..., None]) -> None:
    hold("production", DATABASE_URL="a", DATABASE_SYSTEM_URL="b", ASSENT_AUDIT_KEY="c")
    refuse_needless("sweeps")
    hold("production", DATABASE_URL="a", ANTHROPIC_API_KEY="d", DATABASE_SYSTEM_URL="")
    refuse_needless("turns")
