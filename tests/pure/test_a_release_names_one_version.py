"""Every file names the same version, and a release sets it in all of them and dates its section of the changelog."""

import shutil
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """The module `.ci/release.py`."""
    spec = spec_from_file_location("release", ROOT / ".ci" / "release.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(release: ModuleType, tmp_path: Path) -> Path:
    """A copy of the files that a release changes."""
    for name in (*release.VERSIONED, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changelog = (tmp_path / "CHANGELOG.md").read_text()
    (tmp_path / "CHANGELOG.md").write_text(changelog.replace("## Unreleased\n", "## Unreleased\n\n- Something new.\n", 1))
    return tmp_path


def test_each_file_names_the_present_version(release: ModuleType) -> None:
    version = release.version_of(ROOT)
    assert [name for name in release.VERSIONED if version not in (ROOT / name).read_text()] == []


def test_a_release_sets_the_version_everywhere(release: ModuleType, checkout: Path) -> None:
    before = release.version_of(checkout)
    release.prepare(checkout, "7.8.9", "2026-12-24")
    texts = {name: (checkout / name).read_text() for name in release.VERSIONED}
    assert [name for name, text in texts.items() if "7.8.9" not in text] == []
    assert [name for name, text in texts.items() if name != "pyproject.toml" and before in text] == []
    assert release.version_of(checkout) == "7.8.9"


def test_the_notes_are_the_section_of_the_version(release: ModuleType, checkout: Path) -> None:
    release.prepare(checkout, "7.8.9", "2026-12-24")
    assert release.notes(checkout, "7.8.9").startswith("- Something new.")
    with pytest.raises(SystemExit, match="CHANGELOG"):
        release.notes(checkout, "7.8.8")
    release.prepare(checkout, "7.9.0", "2026-12-31")
    with pytest.raises(SystemExit, match="CHANGELOG"):
        release.notes(checkout, "7.9.0")
    assert release.notes(checkout, "7.8.9").startswith("- Something new."), "the next section does not change it"


def test_the_checksums_are_those_of_the_files(release: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"abc")
    release.write_sums(tmp_path)
    release.write_sums(tmp_path)
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert (tmp_path / "SHA256SUMS").read_text() == f"{digest}  a.whl\n"
