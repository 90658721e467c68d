"""`make setup` and a release install what the lock files name: every dependency of the project, pinned and with hashes."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
RELEASE, DEVELOPMENT = "requirements.lock", "requirements-dev.lock"


def pins(file: str) -> dict[str, list[tuple[Requirement, str]]]:
    """The requirements of a lock file by name, each with its whole text."""
    found: dict[str, list[tuple[Requirement, str]]] = {}
    for text in (ROOT / file).read_text("utf-8").replace("\\\n", " ").splitlines():
        requirement = Requirement(text.split(" --hash=")[0])
        found.setdefault(canonicalize_name(requirement.name), []).append((requirement, text))
    return found


def versions_and_hashes(locked: list[tuple[Requirement, str]]) -> set[str]:
    """What may be installed, on whatever platform."""
    return {str(pin.specifier) + " ".join(sorted(text.split(" --hash=")[1:])) for pin, text in locked}


def declared(*extras: str) -> list[Requirement]:
    """What pyproject.toml asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [Requirement(line) for line in lines if not line.startswith("assent[")]


@pytest.mark.parametrize("file", [RELEASE, DEVELOPMENT])
def test_every_line_is_one_version_with_its_hashes_and_names_no_index(file: str) -> None:
    found = pins(file)
    assert len(found) > 50
    for requirement, text in (pin for named in found.values() for pin in named):
        assert [specifier.operator for specifier in requirement.specifier] == ["=="], text[:80]
        assert text.count("--hash=sha256:") >= 1, text[:80]
        assert requirement.url is None
        assert "://" not in text


@pytest.mark.parametrize(("file", "extras"), [(RELEASE, ()), (DEVELOPMENT, ("local", "dev"))])
def test_every_dependency_is_locked_in_a_version_that_the_project_takes(file: str, extras: tuple[str, ...]) -> None:
    """A change of pyproject.toml without `make lock` fails here."""
    found = pins(file)
    for wanted in declared(*extras):
        versions = [next(iter(pin.specifier)).version for pin, _ in found.get(canonicalize_name(wanted.name), [])]
        assert versions, f"{wanted.name} is not in {file}: run make lock"
        assert all(wanted.specifier.contains(version) for version in versions), f"{wanted} is {versions} in {file}: run make lock"


def test_what_is_tested_is_what_is_released() -> None:
    release, development = pins(RELEASE), pins(DEVELOPMENT)
    for name, locked in release.items():
        assert versions_and_hashes(locked) == versions_and_hashes(development[name]), name
    assert not {"pytest", "ruff", "uv", "fakeredis"} & release.keys(), "a release holds no tools"
