"""The lock files of `make setup` and of a release pin every dependency of the project, with hashes."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
RELEASE, DEVELOPMENT = "requirements.lock", "requirements-dev.lock"


def pins(file: str) -> dict[str, list[tuple[Requirement, str]]]:
    """The requirements of a lock file by name, each with its whole text."""
    locked_pins: dict[str, list[tuple[Requirement, str]]] = {}
    for text in (ROOT / file).read_text("utf-8").replace("\\\n", " ").splitlines():
        requirement = Requirement(text.split(" --hash=")[0])
        locked_pins.setdefault(canonicalize_name(requirement.name), []).append((requirement, text))
    return locked_pins


def versions_and_hashes(locked: list[tuple[Requirement, str]]) -> set[str]:
    """The versions and hashes that may be installed, on all platforms."""
    return {str(pin.specifier) + " ".join(sorted(text.split(" --hash=")[1:])) for pin, text in locked}


def declared(*extras: str) -> list[Requirement]:
    """The dependencies in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    return [Requirement(line) for line in lines if not line.startswith("assent-server[")]


@pytest.mark.parametrize("file", [RELEASE, DEVELOPMENT])
def test_every_line_is_one_version_with_its_hashes_and_names_no_index(file: str) -> None:
    locked_pins = pins(file)
    assert len(locked_pins) > 50
    for requirement, text in (pin for named in locked_pins.values() for pin in named):
        assert [specifier.operator for specifier in requirement.specifier] == ["=="], text[:80]
        assert text.count("--hash=sha256:") >= 1, text[:80]
        assert requirement.url is None
        assert "://" not in text


@pytest.mark.parametrize(("file", "extras"), [(RELEASE, ()), (DEVELOPMENT, ("local", "dev"))])
def test_every_dependency_is_locked_in_a_version_that_the_project_accepts(file: str, extras: tuple[str, ...]) -> None:
    """After a change of pyproject.toml without `make lock` this test fails."""
    locked_pins = pins(file)
    for requirement in declared(*extras):
        versions = [next(iter(pin.specifier)).version for pin, _ in locked_pins.get(canonicalize_name(requirement.name), [])]
        assert versions, f"{requirement.name} is not in {file}: run make lock"
        assert all(requirement.specifier.contains(version) for version in versions), (
            f"{requirement} is {versions} in {file}: run make lock"
        )


def test_tests_and_releases_use_the_same_versions() -> None:
    release, development = pins(RELEASE), pins(DEVELOPMENT)
    for name, locked in release.items():
        assert versions_and_hashes(locked) == versions_and_hashes(development[name]), name
    assert not {"pytest", "ruff", "uv", "fakeredis"} & release.keys(), "a release holds no tools"
