"""The package works without a checkout: its source distribution builds a wheel, whose programs start in any folder.

`test_assent_up_runs_everything.py` has the wheel run everything.
"""

import contextlib
import shutil
import subprocess
import zipfile
from pathlib import Path

import httpx2
import psutil
import pytest
from crashes.processes import wait_for
from local.built import PACKAGES, environment_in, pip, write_foreign_packages
from local.deployed import compose, image_environment, new_variables
from local.documents import ROOT
from own_database import DatabaseUrls

from deploy.folder import free_port
from models import DISTRIBUTION
from models.settings.variables import PROCESSES

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]

TEAM = "team-backend"
"""A distribution of a team, which owns packages named `models` and `api`."""


@pytest.fixture(scope="module")
def team_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of `TEAM`. Each of its packages says whose it is."""
    file = tmp_path_factory.mktemp("team") / "team_backend-1.0-py3-none-any.whl"
    metadata = "team_backend-1.0.dist-info"
    files = {f"{name}/__init__.py": "OWNER = 'the team'" for name in ("api", "models")} | {
        f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: {TEAM}\nVersion: 1.0\n",
        f"{metadata}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{metadata}/RECORD"))
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in (files | {f"{metadata}/RECORD": record}).items():
            archive.writestr(name, text)
    return file


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder of somebody whose packages have the names of Assent's, and fail if anybody imports them."""
    write_foreign_packages(tmp_path)
    return tmp_path


def test_the_wheel_holds_every_file_of_the_packages_in_one_folder(wheel: Path) -> None:
    files = {path.relative_to(ROOT).as_posix() for name in PACKAGES for path in (ROOT / name).rglob("*") if path.is_file()}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        procfile = archive.read("assent_server/deploy/Procfile")
    inside = {f"assent_server/{name.removeprefix('deploy/assent_server/')}" for name in files if "__pycache__" not in name}
    assert names == inside - {"assent_server/assent/pyproject.toml", "assent_server/assent/README.md"}
    assert procfile == (ROOT / "Procfile").read_bytes()


def owners(environment: Path) -> str:
    """Return who owns the packages `api` and `models` that a program of the environment imports."""
    command = [environment / "bin" / "python", "-c", "import api, models; print(api.OWNER, '/', models.OWNER)"]
    return subprocess.run(command, cwd="/", env={}, capture_output=True, text=True, check=True).stdout.strip()


def says_its_version(program: Path, folder: Path) -> bool:
    """True if the command `assent` starts in this folder, with no environment at all."""
    done = subprocess.run([program, "--version"], cwd=folder, env={}, capture_output=True, text=True, check=False)
    return done.stdout.startswith("assent, version ")


@pytest.mark.parametrize("team_first", [True, False])
def test_a_team_s_packages_of_the_same_names_are_installed_beside_it(
    wheel: Path, team_wheel: Path, tmp_path: Path, team_first: bool
) -> None:
    environment = environment_in(tmp_path)
    for distribution in (team_wheel, wheel) if team_first else (wheel, team_wheel):
        pip(environment, "install", "--no-deps", distribution)
    program = environment / "bin" / "assent"
    assert (owners(environment), says_its_version(program, tmp_path)) == ("the team / the team", True)

    leaves, stays = (DISTRIBUTION, TEAM) if team_first else (TEAM, DISTRIBUTION)
    pip(environment, "uninstall", leaves)
    if stays == TEAM:
        assert owners(environment) == "the team / the team"
        assert not program.exists()
    else:
        assert says_its_version(program, tmp_path)


def test_the_command_says_its_version_in_any_folder(program: Path, elsewhere: Path) -> None:
    assert says_its_version(program, elsewhere)


@pytest.mark.slow
@pytest.mark.ci
@pytest.mark.timeout(900)
def test_all_that_compose_starts_runs_for_an_unknown_user_who_can_write_nowhere_else(
    program: Path, database_urls: DatabaseUrls, clean_redis: str, tmp_path: Path
) -> None:
    """Each command of Compose, with the environment of its image and its service, and then its probes. Only addresses differ."""
    if not shutil.which("bwrap"):
        pytest.skip("needs bubblewrap, which plays the container")
    services = compose(new_variables() | {"ANTHROPIC_API_KEY": "none"})
    addresses = {"DATABASE_URL": database_urls.app, "DATABASE_SYSTEM_URL": database_urls.system, "REDIS_URL": clean_redis}
    addresses |= {"DATABASE_OWNER_URL": database_urls.owner}
    ports = {"PORT": str(free_port()), "FLOWER_PORT": str(free_port())}

    def log(name: str) -> Path:
        return tmp_path / f"{name}.log"

    def start(name: str, words: list[str]) -> subprocess.Popen[str]:
        """Run a command in the place of the container of this service. An address counts only if the service has it."""
        variables = services[name].get("environment", {})
        env = image_environment() | variables | {key: value for key, value in addresses.items() if key in variables} | ports
        env["PATH"] = f"{program.parent}:/usr/local/bin:/usr/bin:/bin"
        for folder in ("tmp", "lib"):
            (tmp_path / name / folder).mkdir(parents=True, exist_ok=True)
        box = ["bwrap", "--die-with-parent", "--unshare-user", "--uid", "12345", "--gid", "0"]
        box += ["--ro-bind", "/", "/", "--dev", "/dev"]
        box += ["--bind", str(tmp_path / name / "tmp"), "/tmp", "--ro-bind", str(program.parents[1]), str(program.parents[1])]
        box += ["--tmpfs", "/var/lib", "--bind", str(tmp_path / name / "lib"), "/var/lib/assent"]
        box += ["--dir", "/var/lib/assent/audit", "--chdir", "/var/lib/assent", "--", *words]
        with log(name).open("a") as output:
            return subprocess.Popen(box, env=env, stdout=output, stderr=output, text=True)

    def answer(name: str, *words: str) -> int:
        return start(name, list(words)).wait(60)

    def has_begun(name: str) -> bool:
        """True if it is worth while to start the probe, whose own start costs more than a look."""
        if name != "web":
            return (tmp_path / name / "tmp" / "probes" / f"{name}.ready").exists()
        with contextlib.suppress(httpx2.HTTPError):
            return httpx2.get(f"http://127.0.0.1:{ports['PORT']}/healthz", trust_env=False).is_success
        return False

    assert answer("migrate", "assent", *services["migrate"]["command"]) == 0, log("migrate").read_text()
    for name in PROCESSES:
        process = start(name, ["assent", *services[name]["command"]])
        try:
            wait_for(f"{name} begins", lambda name=name, process=process: has_begun(name) or process.poll() is not None, 120)
            assert process.poll() is None, log(name).read_text()[-3000:]
            assert answer(name, "assent-health", "ready", name) == 0
            assert answer(name, *services[name]["healthcheck"]["test"][1:]) == 0
            (own,) = psutil.Process(process.pid).children()
            own.terminate()
            assert process.wait(60) in (0, 143), log(name).read_text()[-3000:]
        finally:
            process.kill()
            process.wait()
