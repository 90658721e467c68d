"""Makes a release: `make release VERSION=0.2.0`. docs/releasing.md explains it.

If the project has another version yet, it sets the version and dates the changelog, and commits that. Then it checks the project
and writes into dist/ what is uploaded. It neither tags nor uploads: it prints these commands.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONED = (
    "pyproject.toml",
    "assent/pyproject.toml",
    "api/reference/responses.py",
    "deploy/Dockerfile",
    "deploy/compose.yaml",
    "deploy/helm/Chart.yaml",
    "docs/deployment.md",
)
"""The files that name the version."""
UNRELEASED = "## Unreleased\n"
_BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, 'build_' + sys.argv[1])(sys.argv[2]))"


def version_of(root: Path) -> str:
    """Return the project's version."""
    match = re.search(r'^version = "(\S+)"$', (root / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert match, "pyproject.toml has a version"
    return match[1]


def prepare(root: Path, version: str, day: str) -> None:
    """Set the version in all files that name it, and give the unreleased section of the changelog its version and day."""
    before = re.compile(rf"(?<![\d.]){re.escape(version_of(root))}(?![\d.]*\d)")
    for name in VERSIONED:
        path = root / name
        text, count = before.subn(version, path.read_text("utf-8"))
        if not count:
            raise SystemExit(f"release: {name} does not name the present version {version_of(root)}: repair the file")
        if name != "pyproject.toml":
            path.write_text(text, "utf-8")
    project = root / "pyproject.toml"  # last, because the others are compared with its version
    project.write_text(before.sub(version, project.read_text("utf-8"), count=1), "utf-8")
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text("utf-8")
    if UNRELEASED not in text:
        raise SystemExit("release: CHANGELOG.md has no section `Unreleased`: say there what changes")
    changelog.write_text(text.replace(UNRELEASED, f"{UNRELEASED}\n## {version} - {day}\n", 1), "utf-8")


def notes(root: Path, version: str) -> str:
    """Return the section of the changelog about a version."""
    text = (root / "CHANGELOG.md").read_text("utf-8")
    match = re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if not match or not match[1].strip():
        raise SystemExit(f"release: CHANGELOG.md has nothing about {version}")
    return match[1].strip() + "\n"


def write_sums(folder: Path) -> None:
    """Write `SHA256SUMS` of all files of a folder, which `sha256sum --check` reads."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(lines), "utf-8")


def main(version: str) -> None:
    """Make the release of this checkout."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit("release: name the version, as in make release VERSION=0.2.0")
    if _output("git", "status", "--porcelain"):
        raise SystemExit("release: commit or remove what is not committed")
    if _output("git", "tag", "--list", f"v{version}"):
        raise SystemExit(f"release: v{version} is tagged already")
    if version_of(ROOT) != version:
        prepare(ROOT, version, datetime.now(UTC).date().isoformat())
        _run("git", "commit", "--quiet", "--all", "--message", f"Release {version}")
    text = notes(ROOT, version)
    _run("make", "check")
    folder = ROOT / "dist" / version
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    _build(folder)
    _run("make", "sbom")
    (ROOT / "dist" / "assent-server.cdx.json").rename(folder / f"assent_server-{version}.cdx.json")
    shutil.copy(ROOT / "requirements.lock", folder / f"requirements-{version}.lock")
    (folder / f"notes-{version}.md").write_text(text, "utf-8")
    write_sums(folder)
    print(_NEXT.format(version=version, commit=_output("git", "rev-parse", "HEAD"), folder=folder.relative_to(ROOT)))


_NEXT = """{folder} is complete. What is left, once you have looked at it:

  git tag --sign v{version} --message "Assent {version}" {commit}
  git push origin v{version}
  .venv/bin/uv publish {folder}/*.whl {folder}/*.tar.gz
  gh release create v{version} --verify-tag --title "Assent {version}" --notes-file {folder}/notes-{version}.md {folder}/*
  docker build --file deploy/Dockerfile --build-arg VERSION={version} --build-arg COMMIT={commit} --tag assent-server:{version} ."""


def _build(folder: Path) -> None:
    """Build the distributions of the server and of the SDK, with the commit's time instead of the present one."""
    env = {**os.environ, "SOURCE_DATE_EPOCH": _output("git", "log", "-1", "--format=%ct")}
    for source in (ROOT, ROOT / "assent"):
        shutil.rmtree(source / "build", ignore_errors=True)  # of an earlier build, with files that may be gone since
        for kind in ("wheel", "sdist"):
            _run(sys.executable, "-c", _BUILD, kind, str(folder), folder=source, env=env)


def _run(*words: str, folder: Path = ROOT, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(words, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{done.stdout[-3000:]}\nrelease: `{' '.join(words[:3])}` failed")


def _output(*words: str) -> str:
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
