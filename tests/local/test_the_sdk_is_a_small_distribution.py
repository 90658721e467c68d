"""`assent-sdk` is typed and needs no other package. A team tests its toolset with it, in an environment without the server."""

import os
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest
from local.built import build, empty_environment_in, environment_in, pip
from local.documents import CONFTEST, ROOT, TESTS, TOOLSETS

from assent.testing.server import VARIABLE

FILES = {"__init__.py", "py.typed", *(f"testing/{name}.py" for name in ("__init__", "plugin", "server", "stack", "verdicts"))}
PROJECT = {"conftest.py": CONFTEST.text, "test_refunds.py": TESTS.text}
"""The files of a team's tests, as the documents have them."""
HOME = """
import sys

from assent.testing import Stack


def test_it_runs_here(stack: Stack) -> None:
    session = stack.begin(stack.agent("orders"), 'call mcp__orders__refund {"order_id": "1", "amount_cents": 1, "reason": ""}')
    [result] = stack.results(session)
    assert sys.prefix in result["content"][0]["text"]
"""
"""One more test: where the toolset of `shop` runs."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source") / "assent"
    copytree(ROOT / "assent", source, ignore=ignore_patterns("__pycache__"))
    return build("wheel", source, tmp_path_factory.mktemp("built"))


def shop() -> str:
    """Return the toolset of the documents. Its result also says which interpreter runs it."""
    [toolset] = [snippet.text for snippet in TOOLSETS if snippet.page == CONFTEST.page]
    line = '    return {"refunded": amount_cents,'
    assert toolset.count(line) == 1
    return toolset.replace(line, f'    import sys\n\n{line} "python": sys.prefix,')


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a team's toolset and its tests."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name, text in {"shop.py": shop(), "test_home.py": HOME, **PROJECT}.items():
        (folder / name).write_text(text)
    return folder


def run(environment: Path, folder: Path, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run the environment's Python in a folder, without the variables of this process."""
    env = {"PATH": os.defpath, "HOME": str(folder), **variables}
    command = [environment / "bin" / "python", *words]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_it_has_its_package_with_types_and_no_dependency(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        [metadata] = [name for name in archive.namelist() if name.endswith("/METADATA")]
        fields = Parser().parsestr(archive.read(metadata).decode())
    assert names == {f"assent/{name}" for name in FILES}
    needed = [requirement for requirement in fields.get_all("Requires-Dist", []) if "extra ==" not in requirement]
    server = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert (fields["Name"], fields["Version"], needed) == ("assent-sdk", server["version"], [])


def test_a_function_is_tested_with_nothing_else_installed(wheel: Path, project: Path, tmp_path: Path) -> None:
    environment = empty_environment_in(tmp_path)
    pip(environment, "install", wheel)
    calling = "import shop; from assent import Context; print(shop.refund('1', 5, '', Context('call_1'))['key'])"
    assert run(environment, project, "-c", calling).stdout == "call_1\n"
    judging = "from assent.testing import judge; judge('always_ask', 'bash', {})"
    assert f"assent.testing needs the server, which {environment}/bin/python" in run(environment, project, "-c", judging).stderr


@pytest.mark.slow
@pytest.mark.ci
def test_mypy_checks_a_toolset_strictly(wheel: Path, project: Path, tmp_path: Path) -> None:
    environment = environment_in(tmp_path)
    pip(environment, "install", "--no-deps", wheel)
    (project / "wrong.py").write_text('from assent import Cache\n\nCache("long")\n')
    done = run(environment, project, "-m", "mypy", "--strict", "shop.py", *PROJECT, "wrong.py")
    assert done.stdout.splitlines() == [
        'wrong.py:3: error: Argument 1 to "Cache" has incompatible type "str"; expected "float"  [arg-type]',
        "Found 1 error in 1 file (checked 4 source files)",
    ]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_team_tests_its_toolset_in_a_whole_assent_of_another_interpreter(wheel: Path, project: Path, tmp_path: Path) -> None:
    """The server is in the development environment, and the toolset runs in the team's own interpreter."""
    environment = environment_in(tmp_path)
    pip(environment, "install", "--no-deps", wheel)
    done = run(environment, project, "-m", "pytest", "-q", "-p", "no:cacheprovider", **{VARIABLE: sys.executable})
    assert "4 passed" in done.stdout, done.stdout + done.stderr
