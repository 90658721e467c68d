"""A toolset runs in the Python interpreter that its place names, with that interpreter's packages and none of the worker's."""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from looking import text
from written import Caller, House

from workers.tools.kinds import ToolContext
from workers.tools.python import running

TOOLS = """
    import importlib.util, sys
    from team_library import GREETING

    kit = Toolset("kit")

    @kit.tool(effect="read")
    def who(times: int, context: Context) -> dict:
        "Who runs it."
        strangers = [name for name in ("celery", "flask", "sqlalchemy") if importlib.util.find_spec(name)]
        return {"prefix": sys.prefix, "says": GREETING * times, "strangers": strangers, "call": context.call_id}
"""
OF_PYDANTIC = ("pydantic", "pydantic_core", "annotated_types", "typing_extensions.py", "typing_inspection")
"""What pydantic needs, as it lies in the development environment."""


@pytest.fixture
def python(house: House, tmp_path: Path) -> Path:
    """An interpreter with one library of a team, and no other package. The team's code is in ASSENT_TOOLSET_PATH."""
    house.patch.setenv("ASSENT_TOOLSET_PATH", str(house.folder))
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages(environment / "bin" / "python") / "team_library.py").write_text("GREETING = 'hello '\n")
    return environment / "bin" / "python"


def packages(python: Path) -> Path:
    """Return the folder of an environment's packages."""
    return Path(sysconfig.get_path("purelib", vars={"base": str(python.parents[1])}))


def install_pydantic(python: Path) -> None:
    """Give pydantic to an interpreter."""
    for name in OF_PYDANTIC:
        (packages(python) / name).symlink_to(Path(sysconfig.get_path("purelib"), name))


def test_it_has_its_own_packages_and_none_of_the_worker_s(
    house: House, python: Path, context: Callable[..., ToolContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    install_pydantic(python)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    house.write("team_tools", TOOLS)
    house.name(f"team_tools:kit@{python}")
    toolsets, problems = running.describe()
    assert problems == []
    result = Caller({entry["name"]: entry for entry in toolsets["kit"]}, "kit", context)("who", times=2)
    facts = {"prefix": str(python.parents[1]), "says": "hello hello ", "strangers": [], "call": "sevt_call"}
    assert result.structured == facts, text(result)


def test_a_path_of_an_interpreter_begins_at_the_folder_of_toolsets(
    house: House, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_pydantic(python)
    monkeypatch.setenv("ASSENT_TOOLSET_FOLDER", str(python.parents[2]))
    house.write("team_tools", TOOLS)
    house.name(f"team_tools:kit@{python.relative_to(python.parents[2])}")
    toolsets, problems = running.describe()
    assert ([*toolsets], problems) == (["kit"], [])


def test_the_setting_names_the_interpreter_of_an_installed_toolset(house: House, python: Path) -> None:
    install_pydantic(python)
    house.write("team_tools", TOOLS)
    house.install("team-tools", "team_tools:kit")
    assert "No module named 'team_library'" in running.describe()[1][0]
    house.name(f"team_tools:kit@{python}")
    toolsets, problems = running.describe()
    assert ([*toolsets], problems) == (["kit"], [])


def test_an_interpreter_that_cannot_run_it_is_named_with_the_remedy(house: House, python: Path) -> None:
    house.write("team_tools", TOOLS)
    house.name(f"team_tools:kit@{python}")
    toolsets, [problem] = running.describe()
    assert toolsets == {}
    assert problem.endswith(f"{python} has no pydantic, which reads the functions' types: install pydantic 2 there")

    house.name("team_tools:kit@/nowhere/python")
    toolsets, [problem] = running.describe()
    assert toolsets == {}
    assert "cannot start /nowhere/python: [Errno 2] No such file" in problem
