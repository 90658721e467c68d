"""A restored backup starts halted. What may have run after it is settled by people, so nothing runs twice."""

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result
from own_database import Clock, DatabaseUrls, make_url
from psycopg import sql
from rows.stage import Stage, call, rules, say
from warm import HOUSE

from api.cli.main import main
from deploy import sealed_files
from deploy.folder import CannotStart
from deploy.postgres_tools import program
from deploy.restore import unpack
from models.audit import seal_key, signed_heads
from models.audit.acts import Audit
from models.audit.seal_sweep import SealSweep
from models.database import transactions
from models.database.transactions import transaction
from models.errors import Conflict
from models.operate import restoration
from models.operate.doctor import sessions
from models.people.invitation import Invitation, Invitee
from models.session.approval.face import MESSAGE, Face
from models.session.approval.row import Approval
from models.session.event.row import Event
from models.session.row import Session
from models.session.tool_call.row import ToolCall
from models.settings import settings
from models.settings.tools import STORAGE_ID
from models.workspace.halt import Halt
from workers.sweeps import deadlines, resuming


@dataclass
class Place:
    """An installation whose database is replaced by that of a backup."""

    stage: Stage
    urls: DatabaseUrls
    """Of the new, empty database."""
    folder: Path
    patch: pytest.MonkeyPatch

    @property
    def backup(self) -> Path:
        return self.folder / "backup"

    def is_empty(self) -> bool:
        """True if the other database has no tables."""
        with psycopg.connect(self.urls.owner) as db:
            return db.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)

    def make(self, *options: str) -> Result:
        """Make a backup, with a new identity."""
        identity = run("backup", "key", str(self.folder / "identity"))
        assert identity.exit_code == 0, identity.output
        return self.make_again(*options)

    def make_again(self, *options: str) -> Result:
        """Make a backup, with the present identity."""
        recipient = (self.folder / "identity").read_text().split()[2]
        return run("backup", "make", str(self.backup), "--recipient", recipient, *options)

    def restore(self, *options: str, **urls: str) -> Result:
        """Restore it into the other database, which is ours from now on. `urls`: as for `aim`."""
        self.aim(**urls)
        words = ["restore", str(self.backup), "--identity", str(self.folder / "identity"), "--reason", "The disk died."]
        return run(*words, *options)

    def aim(self, **urls: str) -> None:
        """Let the environment name the other database. `urls`: variables with another URL."""
        for name, role in (("DATABASE_URL", "app"), ("DATABASE_SYSTEM_URL", "system"), ("DATABASE_OWNER_URL", "owner")):
            self.patch.setenv(name, urls.get(name, getattr(self.urls, role)))
        settings.cache_clear()
        transactions.dispose()


def run(*words: str) -> Result:
    """Call a command of `assent`."""
    return CliRunner().invoke(main, list(words))


@pytest.fixture
def place(
    stage: Stage, database_urls: DatabaseUrls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private_key: str
) -> Iterator[Place]:
    """An installation with sessions' files, a sealer with its file of heads, and an empty database beside."""
    name = f"assent_restored_{os.getpid()}"
    files = tmp_path / "workdirs"
    (files / "sesn_1").mkdir(parents=True)
    (files / "sesn_1" / "notes").write_text("kept")
    (files / "sesn_1" / "link").symlink_to("/etc/passwd")
    (files / STORAGE_ID.parent).mkdir()
    (files / STORAGE_ID).write_text("stor_1\n")
    key = tmp_path / "audit.key"
    key.write_text(private_key)
    signed_heads.make(signed_heads.beside(key))
    monkeypatch.setenv("ASSENT_WORKDIR_ROOT", str(files))
    monkeypatch.setenv("ASSENT_AUDIT_KEY_FILE", str(key))
    settings.cache_clear()
    with psycopg.connect(database_urls.admin, autocommit=True) as db:
        db.execute(sql.SQL("CREATE DATABASE {} OWNER assent_owner TEMPLATE template0").format(sql.Identifier(name)))
        urls = DatabaseUrls(*(make_url(url, name) for url in vars(database_urls).values()))
        yield Place(stage, urls, tmp_path, monkeypatch)
        monkeypatch.undo()
        settings.cache_clear()
        transactions.dispose()
        db.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def allowed(stage: Stage) -> ToolCall:
    """A call that a person allowed, and that no worker has claimed."""
    tool_call = stage.propose(stage.session())
    stage.confirm(tool_call.session_id, tool_call.id)
    return stage.get(ToolCall, tool_call.id)


def test_what_ran_after_the_backup_does_not_run_again(place: Place, subtests: pytest.Subtests) -> None:
    stage = place.stage
    waits = stage.propose(stage.session())
    queued, running = allowed(stage), stage.begin_call(allowed(stage))
    with_client = stage.propose(stage.session(custom=("lookup",)), call("lookup", n=1))
    idempotent = stage.propose(stage.session(read="always_allow"), call("read", file_path="a"))
    assert (with_client.status, idempotent.idempotent) == ("with_client", True)
    made = place.make("--json")
    assert made.exit_code == 0
    taken_at = json.loads(made.stdout)["taken_at"]
    stage.confirm(waits.session_id, waits.id)
    for tool_call in (waits, queued):
        stage.finish_call(stage.begin_call(tool_call), "paid")
    stage.finish_call(running, "paid")

    restored = place.restore("--without-files")
    assert restored.exit_code == 0, restored.output
    assert stage.claim_call(idempotent) is None, "halted"
    with transaction(stage.workspace_id) as db:
        halt = Halt.current(db)
    assert halt
    assert halt.started_at.isoformat() == taken_at, "so that the time until the restore counts for no deadline"
    resumed = run("restore", "--resume", "--yes")
    assert resumed.exit_code == 0, resumed.output
    for tool_call in (queued, running, with_client):
        assert stage.get(ToolCall, tool_call.id).status == "unknown"
        assert stage.claim_call(tool_call) is None
    assert stage.get(ToolCall, waits.id).status == "asked", "a person decides it again, and knows more"
    assert stage.claim_call(waits) is None
    assert stage.claim_call(idempotent), "it runs again under the same key"
    with transaction(stage.workspace_id) as db:
        ids = [session.id for session in db.find(Session)]
    assert sessions.faults(ids) == []
    with subtests.test("pending approvals say that they may have been decided"):
        [approval] = stage.approvals(waits.session_id)
        assert approval.status == "pending"
        assert approval.backup_at is not None
        assert approval.backup_at.isoformat() == taken_at
        assert not Face.of(approval, MESSAGE).is_whole, (
            "no row, button or word allows it: only the card says what may have happened"
        )
        later = stage.propose(stage.session())
        assert [row.backup_at for row in stage.approvals(later.session_id)] == [None]


def test_people_settle_what_may_have_run(place: Place) -> None:
    stage = place.stage
    happened, again, of_client = (
        allowed(stage),
        allowed(stage),
        stage.propose(stage.session(custom=("lookup",)), call("lookup", n=1)),
    )
    place.make()
    place.restore("--without-files")
    for tool_call, outcome in (
        (happened, {"outcome": "happened", "content": (say("It was paid."),)}),
        (again, {"outcome": "rerun"}),
    ):
        [approval] = [row for row in stage.approvals(tool_call.session_id) if row.kind == "unknown_outcome"]
        assert "may have run after it" in approval.prompt
        stage.decide(approval, **outcome)
    [approval] = [row for row in stage.approvals(of_client.session_id) if row.kind == "unknown_outcome"]
    stage.decide(approval, outcome="rerun")
    assert stage.get(ToolCall, happened.id).status == "done"
    assert stage.get(ToolCall, of_client.id).status == "held", "the client gets it when the halt ends"
    run("restore", "--resume", "--yes")
    assert stage.claim_call(again)


def test_the_model_is_not_told_that_nothing_ran(place: Place) -> None:
    """Of a call that was asked about in the backup, and that a person denies, or a rule once a person has allowed it."""
    stage = place.stage
    denied, refused = stage.propose(stage.session()), stage.propose(stage.session())
    place.make()
    place.restore("--without-files")
    run("restore", "--resume", "--yes")
    stage.confirm(denied.session_id, denied.id, "deny")
    stage.confirm(refused.session_id, refused.id)
    stage.change_policies(policy=rules(("deny", "bash")))
    assert stage.claim_call(refused) is None
    for tool_call in (denied, refused):
        assert "may or may not" in stage.result(tool_call)


def test_no_time_passed_and_neither_a_deadline_nor_a_new_grant_allows_it(place: Place) -> None:
    stage = place.stage
    hurried = stage.propose(stage.session(approval={"on_timeout": "allow", "timeout_seconds": 60}))
    stage.message(session_id := stage.session())
    first, second = stage.reply(session_id, call(command="one"), call(command="two"))
    place.make()
    place.restore("--without-files")
    with psycopg.connect(place.urls.owner, autocommit=True) as db:
        clock = Clock(db)
        clock.advance(86_500)
        run("restore", "--resume", "--yes")
        resuming.end_halts()
        deadlines.expire_approvals()
        assert stage.get(ToolCall, hurried.id).status == "asked", "its clock stood still since the backup"
        stage.confirm(session_id, first.id, scope="session", match="tool")
        resuming.release_granted()
        assert stage.get(ToolCall, second.id).status == "asked", "a person looks at each"
        clock.advance(120)
        deadlines.expire_approvals()
    assert stage.get(ToolCall, hurried.id).status == "expired", "and not allowed"


def test_a_file_of_heads_that_knows_more_contradicts_who_says_so(place: Place) -> None:
    queued = allowed(place.stage)
    SealSweep().run()
    taken_at = json.loads(place.make("--json").stdout)["taken_at"]
    place.stage.message(place.stage.session())
    SealSweep().run()
    place.restore("--without-files", "--workers-stopped-at", taken_at)
    assert place.stage.get(ToolCall, queued.id).status == "unknown"


def test_a_trial_leaves_the_sealer_of_a_running_installation_alone(place: Place) -> None:
    SealSweep().run()
    place.make()
    place.stage.message(place.stage.session())
    SealSweep().run()
    heads = place.folder / "audit.key.heads"
    before = heads.read_bytes()
    restored = place.restore("--without-files")
    assert "act(s) are missing" in restored.output
    assert run("restore", "--resume", "--yes").exit_code == 0
    assert heads.read_bytes() == before


def test_the_sealer_goes_on_without_a_workspace_that_the_backup_has_not(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    SealSweep().run()
    place.make()
    younger = Stage().workspace_id
    SealSweep().run()
    restored = json.loads(place.restore("--without-files", "--json").stdout)
    assert younger in {gap["workspace_id"] for gap in restored["gaps"]}
    adopted = run("audit", "adopt", "--reason", "The disk died.", "--yes")
    assert f"{younger}: the database has no such workspace" in adopted.output
    SealSweep().run()
    assert "AUDIT ALARM" not in caplog.text


def test_a_restore_reports_what_people_have_to_look_at(
    place: Place, database_urls: DatabaseUrls, private_key: str, subtests: pytest.Subtests
) -> None:
    stage = place.stage
    allowed(stage)
    stage.message(at_work := stage.session())
    with transaction(stage.workspace_id) as db:
        Invitation.create(db, Invitee("anna@example.com", "approver"), by=stage.principal)
        for statement in SIGNED_IN:
            db.write(statement, w=stage.workspace_id)
    run("database", "key", "ci", "--workspace", stage.workspace_id)
    SealSweep().run()
    place.make()
    for _ in range(3):
        stage.message(stage.session())
    SealSweep().run()
    report = json.loads(place.restore("--without-files", "--json").stdout)
    with subtests.test("the gap of the audit can be signed with a reason"):
        [gap] = report["gaps"]
        assert gap["workspace_id"] == stage.workspace_id
        assert gap["acts"] > 0
        assert run("audit", "adopt", "--reason", "The disk died.", "--yes").exit_code == 0
        public = seal_key.read_private(private_key).public.text
        verified = run("audit", "verify", "--workspace", stage.workspace_id, "--public-key", public)
        assert verified.exit_code == 0, verified.output
        with transaction(stage.workspace_id) as db:
            actions = [row.action for row in db.find(Audit, "WHERE chain = %(chain)s ORDER BY seq", chain=stage.workspace_id)]
        assert "audit.adopted" in actions
        assert "workspace.restored" in actions
    with subtests.test("keys and people are listed, and sign-ins end"):
        assert [row["kind"] for row in report["to_confirm"][stage.workspace_id]] == ["invitation", "key", "person"]
        with transaction(stage.workspace_id) as db:
            assert db.value("SELECT count(*) FROM sign_in WHERE ended_at IS NULL") == 0
    with subtests.test("the restored database has the same rights"):
        for name, query in CATALOGS.items():
            rows = []
            for url in (database_urls.owner, place.urls.owner):
                with psycopg.connect(url) as db:
                    rows.append(sorted(map(str, db.execute(query).fetchall())))
            assert rows[0] == rows[1], name
    with subtests.test("runs under way are named and can be ended"):
        assert report["at_work"] == {stage.workspace_id: [at_work]}
        run("restore", "--resume", "--yes", "--end-runs")
        assert stage.thread(at_work).status == "idle"
        assert stage.claim(at_work) is None


SIGNED_IN = (
    "INSERT INTO person (id, workspace_id, email, name, created_at) VALUES ('user_1', %(w)s, 'b@example.com', 'Bo', now())",
    "INSERT INTO member (workspace_id, person_id, role, created_at) VALUES (%(w)s, 'user_1', 'admin', now())",
    """
    INSERT INTO sign_in (id, workspace_id, person_id, secret_sha256, method, created_at, seen_at, idle_until, expires_at)
    VALUES ('signin_1', %(w)s, 'user_1', 'x', 'password', now(), now(), now() + interval '1 day', now() + interval '1 day')
    """,
)
"""A person who is an admin, in a browser."""


def test_only_the_resume_ends_the_halt_and_one_from_before_stays(place: Place) -> None:
    stage, other = place.stage, Stage()
    with transaction(other.workspace_id) as db:
        Halt.start(db, other.principal, "The refund tool pays twice.")
    place.make()
    place.restore("--without-files")
    with transaction(stage.workspace_id) as db, pytest.raises(Conflict, match="assent restore --resume"):
        Halt.end(db, stage.principal)
    assert run("restore", "--resume").exit_code == 1, "it asks first"
    assert run("restore", "--resume", "--yes").exit_code == 0
    with transaction(stage.workspace_id) as db:
        assert Halt.current(db) is None
    with transaction(other.workspace_id) as db:
        halt = Halt.current(db)
        assert halt
        assert halt.reason == "The refund tool pays twice."
        Halt.end(db, other.principal)
    assert run("restore", "--resume", "--yes").exit_code == 1, "nothing waits for it any more"


def test_a_restore_that_was_interrupted_goes_on(place: Place) -> None:
    queued = allowed(place.stage)
    place.make()
    place.restore("--without-files")
    with transaction(place.stage.workspace_id) as db:  # as after a crash behind the load
        db.write("UPDATE halt SET restored_at = NULL")
        [state] = [restoration.State(h.workspace_id, h.backup_at, False, True) for h in db.find(Halt) if h.backup_at]
    with pytest.raises(Conflict):
        restoration.resume(state, place.stage.principal)
    assert run("restore", "--resume", "--yes").exit_code == 0
    [approval] = [row for row in place.stage.approvals(queued.session_id) if row.status == "pending"]
    assert approval.kind == "unknown_outcome", "asked once"


def test_all_rows_and_files_come_back(place: Place, subtests: pytest.Subtests) -> None:
    stage = place.stage
    queued = allowed(stage)
    with transaction(stage.workspace_id) as db:
        before = {table: db.value(f"SELECT count(*) FROM {table.__tablename__}") for table in (Event, Approval, ToolCall, Audit)}
    made = place.make("--json")
    assert made.exit_code == 0
    taken_at = json.loads(made.stdout)["taken_at"]
    restored = place.restore("--workers-stopped-at", taken_at, "--workdirs", str(place.folder / "other"))
    assert restored.exit_code == 0, restored.output
    with transaction(stage.workspace_id) as db:
        after = {table: db.value(f"SELECT count(*) FROM {table.__tablename__}") for table in before}
    assert after == before | {Audit: before[Audit] + 1}
    assert (place.folder / "other" / "sesn_1" / "notes").read_text() == "kept"
    assert (place.folder / "other" / "sesn_1" / "link").is_symlink()
    with subtests.test("with workers that had stopped before the backup, calls go on"):
        run("restore", "--resume", "--yes")
        assert stage.claim_call(queued)


OURS = "relnamespace = 'public'::regnamespace"
CATALOGS = {
    "rights of tables": f"SELECT relname, relkind, relacl::text, relrowsecurity, relowner FROM pg_class WHERE {OURS}",
    "rights of columns": f"""
        SELECT relname, attname, attacl::text, attnotnull FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE attnum > 0 AND NOT attisdropped AND {OURS}
    """,
    "functions": """
        SELECT proname, proowner, proacl::text, prosecdef, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    """,
    "policies": "SELECT tablename, policyname, roles::text, cmd, qual, with_check FROM pg_policies",
    "triggers": "SELECT relname, tgname, tgtype FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid WHERE NOT tgisinternal",
    "the schema": """
        SELECT obj_description('alembic_version'::regclass), has_schema_privilege('assent_app', 'public', 'USAGE'),
            has_schema_privilege('assent_definer', 'public', 'CREATE'), has_schema_privilege('assent_app', 'public', 'CREATE')
    """,
}
"""Queries of what a role may do."""


def test_a_backup_that_was_changed_or_is_for_others_changes_nothing(place: Place) -> None:
    place.make()
    run("backup", "key", str(place.folder / "foreign"))
    (place.folder / "identity").rename(place.folder / "own")
    (place.folder / "foreign").rename(place.folder / "identity")
    foreign = place.restore("--without-files")
    assert foreign.exit_code == 1
    assert "cannot be decrypted" in foreign.output
    (place.folder / "own").rename(place.folder / "identity")
    file, manifest = place.backup / "database.age", place.backup / "manifest.json"
    own, text = file.read_bytes(), manifest.read_text()
    recipient = (place.folder / "identity").read_text().split()[2]
    with file.open("wb") as new, sealed_files.encrypting(new, sealed_files.recipients_of([recipient])) as plain:
        plain.write(gzip.compress(b"CREATE TABLE one ();\nSELECT broken;\n" + b"-- more\n" * 1_000_000))
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(json.loads(text) | {"sha256": {"database.age": digest}}))
    faulty = place.restore("--without-files")
    assert "the database is as before: " in faulty.output
    assert "broken" in faulty.output
    manifest.write_text(text)
    file.write_bytes(own)
    file.write_bytes(file.read_bytes()[:-1])
    cut = place.restore("--without-files")
    assert "was changed or cut" in cut.output
    assert place.is_empty()


def test_a_restore_checks_its_databases_before_it_changes_one(
    place: Place, database_urls: DatabaseUrls, subtests: pytest.Subtests
) -> None:
    place.make()
    for variable in ("DATABASE_URL", "DATABASE_SYSTEM_URL", "DATABASE_OWNER_URL"):
        with subtests.test("missing", variable=variable):
            refused = place.restore("--without-files", **{variable: ""})
            assert refused.exit_code == 1
            assert f"{variable} not set" in refused.output
    for variable, url in (("DATABASE_URL", database_urls.app), ("DATABASE_SYSTEM_URL", database_urls.system)):
        with subtests.test("of another database", variable=variable):
            refused = place.restore("--without-files", **{variable: url})
            assert refused.exit_code == 1
            assert "do not lead to one database" in refused.output
    with subtests.test("of another role"):
        refused = place.restore("--without-files", DATABASE_URL=place.urls.owner)
        assert refused.exit_code == 1
        assert "the role assent_owner owns the database" in refused.output
    with subtests.test("of a running `assent up`, beside a URL of ours"):
        folder = place.folder / "running"
        folder.mkdir()
        running = {"database_owner_url": "owner", "database_url": "app", "database_system_url": "system"}
        (folder / "up.json").write_text(json.dumps({name: getattr(database_urls, role) for name, role in running.items()}))
        place.patch.delenv("DATABASE_URL")
        place.patch.delenv("DATABASE_SYSTEM_URL")
        words = ["--identity", str(place.folder / "identity"), "--reason", "A trial.", "--data-dir", str(folder)]
        refused = run("restore", str(place.backup), *words, "--without-files", "--replace", "--yes")
        assert refused.exit_code == 1
        assert "DATABASE_URL and DATABASE_SYSTEM_URL not set" in refused.output
    assert place.is_empty()


def test_a_backup_that_cannot_be_whole_is_none(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_OWNER_URL", os.environ["DATABASE_URL"])  # the app's role sees one workspace at a time
    refused = place.make()
    assert refused.exit_code == 1
    assert "pg_dump failed" in refused.output
    assert not place.backup.exists()


def test_sessions_files_are_left_out_only_on_request(place: Place, subtests: pytest.Subtests) -> None:
    run("backup", "key", str(place.folder / "identity"))
    with subtests.test("no session has files"):
        assert place.make_again("--workdirs", str(place.folder / "missing")).exit_code == 0
    shutil.rmtree(place.backup)
    place.stage.begin_call(allowed(place.stage))
    (place.folder / "empty").mkdir()
    for name in ("missing", "empty"):
        with subtests.test(name):
            refused = place.make_again("--workdirs", str(place.folder / name))
            assert refused.exit_code == 1
            for remedy in ("ASSENT_WORKDIR_ROOT", "--workdirs", "--without-files"):
                assert remedy in refused.output
            assert not place.backup.exists()
    assert place.make_again("--without-files").exit_code == 0


def test_files_may_be_restored_to_the_root_of_a_disk(place: Place, tmp_path: Path) -> None:
    """A mount cannot be renamed, and nothing can be renamed into it from outside. A disk may have a folder of its own."""
    place.make()
    target = tmp_path / "target"
    (target / "lost+found").mkdir(parents=True)
    words = [sys.executable, "-m", "api.cli.main", "restore", str(place.backup), "--identity", str(place.folder / "identity")]
    words += ["--reason", "The disk died.", "--workdirs", str(target)]
    bwrap = ["bwrap", "--dev-bind", "/", "/", "--bind", str(target), str(target), "--"]
    if not shutil.which("bwrap") or subprocess.run([*bwrap, "true"], check=False).returncode:
        pytest.skip("bubblewrap does not work here")
    place.aim()
    done = subprocess.run([*bwrap, *words], cwd=HOUSE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (target / "sesn_1" / "notes").read_text() == "kept"
    assert {path.name for path in target.iterdir()} == {".storage", "sesn_1", "lost+found"}


@pytest.mark.parametrize("name", ["../outside", "/outside", "link/outside"])
def test_files_that_lead_out_of_their_folder_are_refused(tmp_path: Path, name: str) -> None:
    """Who can write a backup can write any names into it. `link` leads to the folder above."""
    folder, target = tmp_path / "backup", tmp_path / "target"
    folder.mkdir()
    identity, recipient = sealed_files.new_key()
    (tmp_path / "identity").write_text(identity)
    with (
        (folder / "workdirs.age").open("wb") as file,
        sealed_files.encrypting(file, sealed_files.recipients_of([recipient])) as plain,
        tarfile.open(fileobj=plain, mode="w|gz") as tar,
    ):
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, ".."
        tar.addfile(link)
        tar.addfile(tarfile.TarInfo(name))
    with pytest.raises(CannotStart, match="leads outside"):
        unpack(folder, target, sealed_files.identities_in(tmp_path / "identity"))
    assert not list(tmp_path.rglob("outside"))


def test_files_that_an_agent_closes_are_named(place: Place) -> None:
    folder = place.folder / "workdirs" / "sesn_1"
    (folder / "closed").write_text("secret")
    (folder / "linked").hardlink_to(folder / "closed")
    (folder / "closed").chmod(0)
    recipient = run("backup", "key", str(place.folder / "identity")).stdout.strip()
    words = [sys.executable, "-m", "api.cli.main", "backup", "make", str(place.backup), "--recipient", recipient, "--json"]
    as_other = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    done = subprocess.run([*as_other, *words], cwd=HOUSE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(done.stdout)["unreadable"]) == ["sesn_1/closed", "sesn_1/linked"]
    assert place.restore("--workdirs", str(place.folder / "other")).exit_code == 0
    assert (place.folder / "other" / "sesn_1" / "notes").read_text() == "kept"


def test_a_file_may_get_shorter_while_it_is_read(place: Place) -> None:
    size, done = 5_000_000, threading.Event()
    files = [place.folder / "workdirs" / "sesn_1" / f"log{number}" for number in range(8)]
    for file in files:
        file.write_bytes(b"")

    def rewrite() -> None:
        while not done.is_set():
            for length in (size, 0):
                for file in files:
                    os.truncate(file, length)

    writer = threading.Thread(target=rewrite)
    writer.start()
    made = place.make()
    done.set()
    writer.join()
    assert made.exit_code == 0, made.output
    assert place.restore("--workdirs", str(place.folder / "other")).exit_code == 0
    assert (place.folder / "other" / "sesn_1" / "notes").read_text() == "kept"


def test_an_error_of_the_disk_is_a_sentence(place: Place) -> None:
    (place.folder / "file").write_text("")
    recipient = run("backup", "key", str(place.folder / "identity")).stdout.strip()
    refused = run("backup", "make", str(place.folder / "file" / "backup"), "--recipient", recipient)
    assert refused.exit_code == 1
    assert refused.output.startswith("Error: ")
    assert "Not a directory" in refused.output


def test_programs_of_an_older_postgres_are_refused() -> None:
    with pytest.raises(CannotStart, match="pg_dump of PostgreSQL 99 or newer is needed"):
        program("pg_dump", 99)


def test_a_database_with_rows_is_replaced_only_on_request(place: Place) -> None:
    place.make()
    assert place.restore("--without-files").exit_code == 0
    refused = place.restore("--without-files")
    assert refused.exit_code == 1
    assert "--replace" in refused.output
    assert place.restore("--without-files", "--replace", "--yes").exit_code == 0
    assert len(restoration.states()) == 1
