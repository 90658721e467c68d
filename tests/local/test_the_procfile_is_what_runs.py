"""The Procfile names the processes, and each line runs by `exec` with nothing but environment variables."""

import pytest
import warm
from local.lines import LINES, command, words

from deploy.procfile import ROOT
from models.settings.variables import PROCESSES


def test_there_is_one_procfile() -> None:
    assert (ROOT / "deploy/Procfile").resolve() == ROOT / "Procfile"


def test_the_procfile_names_all_processes() -> None:
    assert list(LINES) == list(PROCESSES)


@pytest.mark.parametrize("name", LINES)
def test_every_line_is_one_program(name: str) -> None:
    assert not {"|", ";", "&", "<", ">"} & set(LINES[name].replace('"api:create_app()"', ""))


def test_everything_listens_on_loopback_unless_told_otherwise() -> None:
    assert "127.0.0.1:8000" in words("web")
    assert "0.0.0.0:80" in words("web", HOST="0.0.0.0", PORT="80")
    assert "--address=127.0.0.1" in words("flower")


def test_flower_does_not_start_without_a_password_and_never_shows_it() -> None:
    done = warm.run(*command("flower")[1:])
    assert done.returncode == 1
    assert "FLOWER_BASIC_AUTH is not set" in done.stderr
    assert "hush" not in " ".join(words("flower", FLOWER_BASIC_AUTH="name:hush"))


def test_every_queue_has_a_worker() -> None:
    named = [words(name)[words(name).index("--queues") + 1] for name in ("turns", "tools", "sweeps", "deliver")]
    queues = {queue for names in named for queue in names.split(",")}
    assert queues == {"turns", "sweeps", "tools", "deliver"}
