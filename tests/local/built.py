"""Distributions that a test builds, and environments into which it installs them. Nothing needs the network."""

import fcntl
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copy, copytree, ignore_patterns

from local.documents import ROOT

PACKAGES = ("api", "assent", "deploy", "models", "workers")
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


@contextmanager
def folder_of_the_run(name: str) -> Iterator[Path]:
    """Yield a folder of the test run that one test process at a time may make, for all of them."""
    folder = Path(os.environ["ASSENT_TEST_RUN"].rpartition(":")[0]) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def program_of_the_run() -> Path:
    """Return the command `assent` of an environment with the wheel. The first test process that asks makes it."""
    wheel = wheel_of_the_run()
    with folder_of_the_run("installed") as folder:
        done = folder / "done"
        if not done.exists():
            pip(environment_in(folder), "install", "--no-deps", "--compile-bytecode", wheel)
            done.touch()
    return folder / "env" / "bin" / "assent"


def wheel_of_the_run() -> Path:
    """Return a wheel, built from the source distribution of this checkout's files. The first test process that asks builds it."""
    with folder_of_the_run("wheel") as folder:
        if not folder.exists():
            source, target = folder.with_suffix(".source"), folder.with_suffix(".target")
            source.mkdir()
            target.mkdir()
            for name in ("LICENSE", "Procfile", "README.md", "pyproject.toml", "setup.py"):
                copy(ROOT / name, source)
            for name in PACKAGES:
                copytree(ROOT / name, source / name, symlinks=True, ignore=ignore_patterns("__pycache__"))
            archive = build("sdist", source, target)
            subprocess.run(["tar", "-xf", archive, "-C", target], check=True)
            build("wheel", target / archive.name.removesuffix(".tar.gz"), target)
            target.rename(folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def write_foreign_packages(folder: Path) -> None:
    """Write packages with the names of Assent's into a folder. They fail if anybody imports them."""
    for name in PACKAGES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"raise RuntimeError('the package {name} of the current folder was imported')")
