"""Distributions that a test builds, and environments into which it installs them. Nothing needs the network."""

import subprocess
import sys
import sysconfig
from pathlib import Path

BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def build(kind: str, source: Path, target: Path) -> Path:
    """Build a distribution by the development environment's setuptools. Returns its file."""
    command = [sys.executable, "-c", BUILD, f"build_{kind}", target]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True)
    return target / done.stdout.splitlines()[-1]


def pip(environment: Path, *words: str | Path) -> None:
    """Run a command of pip in an environment, without dependencies and without the network."""
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "pip", *words, "--quiet", "--offline", "--python", environment / "bin" / "python"], check=True)


def empty_environment_in(folder: Path) -> Path:
    """Return a new environment without packages."""
    environment = folder / "env"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--offline", "--python", sys.executable, environment], check=True)
    return environment


def environment_in(folder: Path) -> Path:
    """Return a new environment, which has the packages of the development environment, but not the checkout."""
    environment = empty_environment_in(folder)
    (packages,) = environment.glob("lib/python*/site-packages")
    # A path in a .pth file is only appended: the development environment's own .pth files, with the checkout, are not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return environment
