"""`assent up`: all of Assent on one machine, with its data in one folder, under one process.

Starts an embedded Postgres and Redis, the stand-in model, and the Procfile's processes. A server that the environment names
(`DATABASE_URL`, `REDIS_URL`, `ANTHROPIC_API_KEY`, `ASSENT_PROVIDERS`) replaces the embedded one. `deploy.welcome` has the texts.
"""

import errno
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import get_args

from deploy import welcome
from deploy.checks import check_owner, check_running_role
from deploy.embedded_postgres import Postgres
from deploy.embedded_redis import Redis
from deploy.folder import MARK, CannotStart, Folder, end_leftovers, why_taken
from deploy.probes import ShellProbe, Workers, responds
from deploy.procfile import PROCFILE, ROOT, lines, with_absolute_paths, with_own_interpreter, with_own_port
from deploy.supervisor import Child, Stopped, Supervisor, shell
from models.audit import seal_key, signed_heads
from models.database import encryption
from models.notices import push_keys
from models.settings import settings
from models.settings.providers import ProvidersMisconfigured, registry
from models.settings.variables import environment_of

UP = "up.json"
AUDIT_KEY = "audit.key"
PUSH_KEY = "push.key"
READY_SECONDS = 60
FLOWER_USER = "assent"
MODELS = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ASSENT_PROVIDERS")
"""Variables that name a model, so that the stand-in is not started."""


def up(port: int, path: Path, procfile: Path = PROCFILE, *, sample: bool = True, command: str = "assent") -> int:
    """Run until SIGINT, SIGTERM or SIGHUP. Returns the exit code: 1, after one line on stderr, if the start fails.

    `sample`: begin a sample session at the first start. `command`: how people run `assent` here.
    """
    try:
        with Folder(path) as folder:
            end_leftovers(folder.path)
            return Local(folder, port, procfile, sample=sample, command=command).run()
    except CannotStart as refused:
        print(f"assent: {refused}", file=sys.stderr)
        return 1


class Local:
    """One `assent up`. `_start` holds the steps. `models.settings.variables` decides which variables of `env` each child gets."""

    def __init__(self, folder: Folder, port: int, procfile: Path, *, sample: bool = True, command: str = "assent") -> None:
        error = why_taken(port)
        if error:
            reason = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
            raise CannotStart(f"port {port} {reason}: stop the program that listens there, or name another --port")
        self.folder = folder
        self.started_in = Path.cwd()
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.public_url = os.environ.get("ASSENT_PUBLIC_URL") or f"http://localhost:{port}"
        self.procfile = procfile
        self.sample = sample
        self.supervisor = Supervisor(ROOT, self._write_up)
        self.env = self._environment(os.environ)
        self.owner_url = os.environ.get("DATABASE_OWNER_URL", "")
        self.stand_in = not any(os.environ.get(name) for name in MODELS)
        _check_providers()
        self.embedded = not os.environ.get("DATABASE_URL")
        self.key = self.metrics_token = self.sign_in_url = ""
        self.command = command
        self.shell = None if "ASSENT_SHELL" in self.env else ShellProbe()

    def run(self) -> int:
        """Start everything, wait for a signal, stop everything."""
        self.folder.remove(UP)
        self.supervisor.listen()
        try:
            sample = self._start()
            self.supervisor.is_ready = True
            self._write_up()
            welcome.ready(self, sample=sample)
            self.supervisor.wait()
        except Stopped:
            pass
        finally:
            self.supervisor.is_ready = False
            self.folder.remove(UP)
            self.supervisor.stop()
            end_leftovers(self.folder.path, seconds=0.2)  # children whose parents ended earlier
        return 0

    def _start(self) -> bool:
        """Start everything in order. Returns True if a sample session waits for a decision."""
        self._start_redis()
        self._start_database()
        self._migrate()
        self._start_model()
        self._choose_shell()
        self._make_audit_key()
        self._make_secret_keys()
        self._make_push_keys()
        self._use_own_settings()
        from deploy import first  # reads the settings, which are complete only now

        self.key, new = first.api_key(self.folder)
        self.metrics_token = first.metrics_token(self.folder)
        self.sign_in_url = first.sign_in_link()
        self._start_processes()
        workers = Workers(self.env["REDIS_URL"])
        user, _, password = self.env["FLOWER_BASIC_AUTH"].partition(":")
        self._wait_for("the API", lambda: responds(f"{self.url}/readyz"))
        self._wait_for("Flower", lambda: responds(self.flower_url, (user, password)))
        self._wait_for("the workers", workers.respond)
        sample = self.sample and new and self.stand_in and self.embedded
        if sample:
            session_id = first.sample_session(self.url, self.key)
            self._wait_for("the sample session", lambda: first.waits(self.url, self.key, session_id))
        return sample

    def _wait_for(self, name: str, ready: Callable[[], bool]) -> None:
        """Wait until a part is ready, and say so. Raises CannotStart, Stopped."""
        began = time.monotonic()
        self.supervisor.wait_for(name, ready, READY_SECONDS)
        self.supervisor.say(f"{name}: ready after {time.monotonic() - began:.1f} s")

    def _environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        env = {k: v for k, v in variables.items() if k != "DATABASE_OWNER_URL"}
        env["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), variables.get("PATH", os.defpath)])
        env |= {MARK: str(self.folder.path), "PYTHONUNBUFFERED": "1", "PORT": str(self.port), "HOST": "127.0.0.1"}
        env |= {"ASSENT_ENVIRONMENT": "development", "ASSENT_PUBLIC_URL": self.public_url}
        env.setdefault("ASSENT_WORKDIR_ROOT", str(self.folder.path / "workdirs"))
        env.setdefault("ASSENT_TOOLSET_FOLDER", str(self.started_in))
        env.setdefault("LOG_LEVEL", "warning")
        env.setdefault("PYTHONWARNINGS", "ignore:You're running the worker")  # Celery's long warning about root
        env["FLOWER_PORT"] = str(self.folder.port("flower", 5555 if self.port == 8000 else None))
        env.setdefault("FLOWER_BASIC_AUTH", f"{FLOWER_USER}:{self.folder.secret('flower')}")
        return with_absolute_paths(env, self.started_in)

    def _start_database(self) -> None:
        if not self.embedded:
            if not self.env.get("DATABASE_SYSTEM_URL"):
                raise CannotStart("DATABASE_URL is set but DATABASE_SYSTEM_URL is not: set the role assent_system's URL as well")
            return
        postgres = self.postgres
        postgres.prepare()
        self.supervisor.start(postgres.child(environment_of("postgres", self.env)))
        self._wait_for("Postgres", postgres.is_ready)
        postgres.create_roles()
        self.owner_url = postgres.url("owner")
        self.env |= {"DATABASE_URL": postgres.url("app"), "DATABASE_SYSTEM_URL": postgres.url("system")}

    def _migrate(self) -> None:
        from deploy.migrate import check_current, migrate  # loads alembic, so only after the cheap checks

        if self.owner_url:
            check_owner("DATABASE_OWNER_URL", self.owner_url)
            migrate(self.owner_url)
        for variable in ("DATABASE_URL", "DATABASE_SYSTEM_URL"):
            check_running_role(variable, self.env[variable])
        problem = check_current(self.env["DATABASE_URL"])
        if problem:
            raise CannotStart(problem)

    def _start_redis(self) -> None:
        if self.env.get("REDIS_URL"):
            return
        redis = Redis(self.folder.path / "redis", self.folder.port("redis"), self.folder.secret)
        if not redis.server:
            self.supervisor.say(welcome.SLOW_REDIS)
        redis.prepare()
        self.supervisor.start(redis.child(environment_of("redis", self.env)))
        self._wait_for("Redis", redis.is_ready)
        self.env["REDIS_URL"] = redis.url

    def _start_model(self) -> None:
        if not self.stand_in:
            return
        port = self.folder.port("standin")
        line = shell(sys.executable, "-m", "deploy.standin", "--port", str(port))
        self.supervisor.start(Child("standin", line, environment_of("standin", self.env)))
        self.env |= {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": "stand-in"}

    def _choose_shell(self) -> None:
        if self.shell is None:
            return
        self.env["ASSENT_SHELL"] = "bubblewrap" if self.shell.works() else "bare"
        if self.env["ASSENT_SHELL"] == "bare":
            self.supervisor.say(welcome.BARE_SHELL)

    def _make_audit_key(self) -> None:
        """Create the key that signs the audit's seals, unless the data folder or the environment has a key."""
        if self.env.get("ASSENT_AUDIT_KEY") or self.env.get("ASSENT_AUDIT_KEY_FILE"):
            return
        if self.folder.read(AUDIT_KEY) is None:
            self.folder.write(AUDIT_KEY, seal_key.make())
            signed_heads.make(signed_heads.beside(self.folder.path / AUDIT_KEY))
        self.env["ASSENT_AUDIT_KEY_FILE"] = str(self.folder.path / AUDIT_KEY)

    def _make_secret_keys(self) -> None:
        """Create a pair of keys for each reader of encrypted secrets, unless the environment has the reader's public key."""
        for reader in get_args(encryption.Reader):
            if self.env.get(f"ASSENT_{reader.upper()}_PUBLIC_KEY"):
                continue
            text = self.folder.read(f"{reader}.key")
            if text is None:
                text = encryption.new_keys()[0]
                self.folder.write(f"{reader}.key", text)
            self.env[f"ASSENT_{reader.upper()}_PRIVATE_KEYS"] = text
            self.env[f"ASSENT_{reader.upper()}_PUBLIC_KEY"] = encryption.public_of(text.split()[0])

    def _make_push_keys(self) -> None:
        """Create the keys of push messages, unless the environment has a public key."""
        if self.env.get("ASSENT_PUSH_PUBLIC_KEY"):
            return
        if self.folder.read(PUSH_KEY) is None:
            self.folder.write(PUSH_KEY, push_keys.new_keys()[0])
        text = (self.folder.read(PUSH_KEY) or "").strip()
        self.env |= {"ASSENT_PUSH_PRIVATE_KEY": text, "ASSENT_PUSH_PUBLIC_KEY": push_keys.public_of(text)}
        self.env.setdefault("ASSENT_PUSH_CONTACT", "operator@example.com")

    def _use_own_settings(self) -> None:
        os.environ.update(self.env)
        settings.cache_clear()
        # Only the sweeps hold the private key; the other processes verify by the public key.
        try:
            self.env["ASSENT_AUDIT_PUBLIC_KEYS"] = " ".join(key.text for key in seal_key.trusted_keys())
        except (OSError, ValueError) as error:
            raise CannotStart(f"the audit's keys (ASSENT_AUDIT_KEY, _KEY_FILE, _PUBLIC_KEYS) cannot be read: {error}") from None

    def _start_processes(self) -> None:
        for number, (name, line) in enumerate(lines(self.procfile).items()):
            env = with_own_port(environment_of(name, self.env), number)
            self.supervisor.start(Child(name, with_own_interpreter(line), env))

    def _write_up(self) -> None:
        """Write URLs, keys and pids to `up.json`, for programs: once everything is ready, and after each restart of a child."""
        if not self.supervisor.is_ready:
            return
        user, _, password = self.env["FLOWER_BASIC_AUTH"].partition(":")
        content = {
            "url": self.url,
            "api_key": self.key,
            "metrics_token": self.metrics_token,
            "public_url": self.public_url,
            "inbox_url": self.inbox_url,
            "sign_in_url": self.sign_in_url,
            "flower_url": self.flower_url,
            "flower_user": user,
            "flower_password": password,
            "database_url": self.env["DATABASE_URL"],
            "database_system_url": self.env["DATABASE_SYSTEM_URL"],
            "database_owner_url": self.owner_url,
            "redis_url": self.env["REDIS_URL"],
            "pid": os.getpid(),
            "processes": self.supervisor.pids,
        }
        self.folder.write(UP, json.dumps(content, indent=1))

    @property
    def inbox_url(self) -> str:
        """The inbox's URL. A person first signs in with `sign_in_url`."""
        return f"{self.public_url}/inbox"

    @property
    def flower_url(self) -> str:
        """Flower's URL. Flower asks for a name and a password."""
        return f"http://127.0.0.1:{self.env['FLOWER_PORT']}"

    @cached_property
    def postgres(self) -> Postgres:
        return Postgres(self.folder.path / "postgres", self.folder.port("postgres"), self.folder.secret)


def _check_providers() -> None:
    try:
        registry()
    except ProvidersMisconfigured as error:
        raise CannotStart(str(error)) from None
