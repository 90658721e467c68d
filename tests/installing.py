"""Packages of npm and PyPI that tests use. They are kept between test runs, as an installation takes half a minute."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import environment
import pytest

SECONDS = 110
"""The time limit of an installation."""


def from_npm(name: str, source: Path) -> Path:
    """Return a folder with the packages that the lock file of `source` names."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip(f"NOT TESTED: {name}, as node or npm is missing here")
    files = [source / "package.json", source / "package-lock.json"]

    def install(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        run(npm, "ci", "--no-audit", "--no-fund", "--prefer-offline", "--ignore-scripts", folder=folder)

    return installed(name, files[1].read_bytes(), install)


def installed(name: str, contents: bytes, install: Callable[[Path], None]) -> Path:
    """Return the folder in which `install` has installed packages. Another `contents` is another installation."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assent-tests"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{name}-{hashlib.sha256(contents).hexdigest()[:12]}"
    with (cache / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            try:
                install(folder)
            except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
                output = (error.stderr or b"").decode()[-500:]
                pytest.skip(f"NOT TESTED: {name}, as the registry does not give its packages: {output}")
            (folder / "done").touch()
    return folder


def run(*words: str | Path, folder: Path) -> None:
    """Run an installer in a folder."""
    subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=SECONDS, env=environment.of_installers())
