"""Over all workspaces the app's role has only functions, each of which finds only rows that its caller can name."""

import json
from typing import Any

import psycopg
import pytest
from doors.served import key
from own_database import DatabaseUrls
from psycopg.errors import InsufficientPrivilege
from walls.world import World, rows

from models.pure.key_secret import sha256
from models.workspace import key_lookup
from models.workspace.api_key import SCOPES

FUNCTIONS = {
    "assent_announce_toolsets": ("'[]'", "false", "1.0"),
    "assent_claim_failed": ("'unknown'",),
    "assent_find_identity": ("'https://issuer.example'", "'unknown'"),
    "assent_find_invitation": ("'unknown'",),
    "assent_find_key": ("'unknown'",),
    "assent_find_link": ("'unknown'", "'unknown'"),
    "assent_find_passkey": ("'unknown'::bytea",),
    "assent_find_person": ("'nobody@example.com'",),
    "assent_find_sign_in": ("'unknown'",),
    "assent_forget_person": ("'user_unknown'", "'Nobody'", "now()"),
    "assent_gone_sessions": ("ARRAY[]::text[]",),
    "assent_good_keys": ("ARRAY['key_unknown']",),
    "assent_held_leases": ("ARRAY['turn_unknown']", "ARRAY[1]"),
    "assent_listing_changed": ("'https://unknown.example'",),
    "assent_read_metrics": ("'unknown'", "1", "1"),
    "assent_renew_leases": ("ARRAY['turn_unknown']", "ARRAY[1]", "interval '45 seconds'"),
    "assent_session_heads": ("ARRAY['sesn_unknown']",),
    "assent_sweep_succeeded": ("'unknown'",),
}
"""Every function of the app that runs with other rights than its caller's, with arguments that find nothing."""
OF_EVERYBODY = {"assent_read_sweeps"}
"""Such functions that return the same to every workspace, and nothing about any: the times of sweeps."""
OF_THE_SWEEPS = {"assent_add_asks", "assent_closed_approvals", "assent_cut_audit"}
"""Such functions that only the sweeps' role may call. They return no content."""
OF_THE_SCALER = {"assent_read_queues"}
"""Such functions that only the role for KEDA may call. They return names of queues, and numbers."""

SUMS = {"workspace_id", "about", "day", "name", "outcome"}
"""The key of `daily_asks`: numbers of approvals by tool, agent and person, without content."""

_FACTS = """
    SELECT p.proname, pg_get_userbyid(p.proowner) AS owner, p.proconfig,
           has_function_privilege('assent_app', p.oid, 'EXECUTE') AS app,
           has_function_privilege('assent_system', p.oid, 'EXECUTE') AS system,
           has_function_privilege('assent_scaler', p.oid, 'EXECUTE') AS scaler,
           EXISTS (SELECT FROM aclexplode(p.proacl) WHERE grantee = 0) AS everybody
    FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef
"""
_COLUMNS = """
    SELECT table_name, column_name, privilege_type FROM information_schema.column_privileges WHERE grantee = 'assent_definer'
"""


def test_each_function_belongs_to_the_definer_and_only_its_caller_may_call_it(database_urls: DatabaseUrls) -> None:
    facts = {name: rest for name, *rest in rows(database_urls.admin, _FACTS)}
    assert set(facts) == set(FUNCTIONS) | OF_EVERYBODY | OF_THE_SWEEPS | OF_THE_SCALER
    for name, (owner, config, *callers) in facts.items():
        assert owner == "assent_definer", name
        assert config == ["search_path=public, pg_temp"], name
        assert callers == [name in {*FUNCTIONS, *OF_EVERYBODY}, name in OF_THE_SWEEPS, name in OF_THE_SCALER, False], name


def test_the_definer_cannot_log_in_and_sees_no_content(database_urls: DatabaseUrls) -> None:
    """So a flaw in a function reveals no message, input, result or decision."""
    strong = "rolcanlogin OR rolsuper OR rolbypassrls OR rolcreatedb OR rolcreaterole"
    [[strong]] = rows(database_urls.admin, f"SELECT {strong} FROM pg_roles WHERE rolname = 'assent_definer'")
    assert strong is False
    [[may_create]] = rows(database_urls.admin, "SELECT has_schema_privilege('assent_definer', 'public', 'CREATE')")
    assert may_create is False
    readable: dict[str, set[str]] = {}
    writable: set[tuple[str, str]] = set()
    for table, column, right in rows(database_urls.admin, _COLUMNS):
        if right == "SELECT":
            readable.setdefault(table, set()).add(column)
        elif right in {"UPDATE", "INSERT"} and table not in {"metric", "toolset"}:
            writable.add((table, column))
    assert readable.pop("toolset"), "it belongs to the operator"
    assert readable.pop("metric"), "it belongs to the operator"
    key = {"id", "workspace_id", "scopes", "secret_sha256", "environment_id"}
    assert readable == {
        "api_key": key | {"allowed_cidrs", "makers", "expires_at", "disabled_at", "revoked_at"},
        "approval": {"id", "workspace_id", "status", "kind", "created_at", "expires_at", "deadline_from"} | {"tool", "agent_id"},
        "approval_change": {"due_at"},
        "audit": {
            "chain",
            "seq",
            "workspace_id",
            "at",
            "principal",
            "action",
            "subject_id",
            "details",
        },  # texts are digests in them
        "audit_anchor": {"workspace_id", "seq", "cut_to", "cut_at", "created_at"},
        "audit_text": {"chain", "seq", "workspace_id"},
        "daily_asks": SUMS | {"asks"},
        "delivery": {"endpoint_id", "status", "due_at"},
        "endpoint": {"id", "paused_until"},
        "halt": {"workspace_id", "started_at", "ended_at"},
        "identity": {"workspace_id", "issuer", "subject", "person_id"},
        "invitation": {"id", "workspace_id", "secret_sha256"},
        "legal_hold": {"workspace_id", "session_id", "released_at"},
        "link": {"id", "workspace_id", "token_sha256", "code_hmac", "tries", "used_at"},
        "listing": {"url"},
        "member": {"workspace_id", "person_id", "role", "source", "deactivated_at"},
        "membership": {"workspace_id", "person_id", "group_id"},
        "notification": {"status", "due_at"},
        "passkey": {"id", "workspace_id", "person_id", "credential_id"},
        "person": {"id", "workspace_id", "email"},
        "seal": {"workspace_id", "seq"},
        "session": {"id", "last_seq"},
        "sign_in": {"id", "workspace_id", "person_id", "method", "role_limit", "makers", "secret_sha256"}
        | {"seen_at", "idle_until", "expires_at", "ended_at"},
        "tool_call": {"id", "status", "fence", "lease_until", "cancel_requested_at"}
        | {"workspace_id", "due_at", "queue", "held_back"},
        "turn": {"id", "status", "fence", "lease_until", "workspace_id", "due_at"},
        "workspace": {"id", "seal_alarm", "seal_stopped"},
    }
    sums = {("daily_asks", column) for column in SUMS | {"asks"}}
    forgets = {("person", "email"), ("person", "name"), ("person", "erased_at")}
    leases = {("tool_call", "lease_until"), ("turn", "lease_until")}
    of_the_cut = {("audit_anchor", "cut_at"), ("workspace", "workspace_id")}  # the latter to lock the row: it equals the row's id
    assert writable == sums | forgets | {("listing", "changed_at")} | leases | of_the_cut
    rights = "SELECT table_name FROM information_schema.table_privileges WHERE grantee = 'assent_definer' AND privilege_type = %s"
    assert {table for (table,) in rows(database_urls.admin, rights, "DELETE")} == {"audit", "audit_text", "seal"}


def test_a_caller_that_knows_no_id_or_secret_reads_and_changes_nothing(
    theirs: World, admin: "psycopg.Connection[Any]", database_urls: DatabaseUrls, subtests: pytest.Subtests
) -> None:
    before = theirs.rows(admin)
    for name, values in FUNCTIONS.items():
        with subtests.test(name):
            arguments, nulls = ", ".join(values), ", ".join(["NULL"] * len(values))
            assert not any(row[0] for row in rows(database_urls.app, f"SELECT * FROM {name}({arguments})"))
            with pytest.raises(InsufficientPrivilege, match="permission denied for function"):
                rows(database_urls.system, f"SELECT * FROM {name}({arguments})")
            assert not any(row[0] for row in rows(database_urls.app, f"SELECT * FROM {name}({nulls})"))
            assert theirs.rows(admin) == before


def test_the_metrics_are_read_only_by_a_key_of_their_scope(ours: World, database_urls: DatabaseUrls) -> None:
    reads = "SELECT name FROM assent_read_metrics(%s, 1, 1)"
    strong, metrics = (sha256(key(ours.stage, *scopes)) for scopes in (set(SCOPES) - {"metrics"}, ["metrics"]))
    assert rows(database_urls.app, reads, strong) == []
    assert rows(database_urls.app, reads, metrics)


def test_a_key_is_found_only_by_the_hash_of_its_secret(theirs: World, ours: World, database_urls: DatabaseUrls) -> None:
    find = "SELECT id, workspace_id FROM assent_find_key(%s)"
    [(key_id, workspace_id)] = rows(database_urls.app, find, sha256(theirs.key), workspace=ours.workspace_id)
    assert workspace_id == theirs.workspace_id
    for guess in (key_id, theirs.key, "%", ""):
        assert rows(database_urls.app, find, guess, workspace=ours.workspace_id) == []
    assert rows(database_urls.app, "SELECT * FROM assent_good_keys(%s)", [key_id]) == [(key_id,)]


def test_a_lease_is_renewed_only_with_its_fence(
    theirs: World, admin: "psycopg.Connection[Any]", database_urls: DatabaseUrls
) -> None:
    theirs.stage.message(theirs.resting_id)
    turn = theirs.stage.begin(theirs.resting_id)
    before = theirs.rows(admin)["turn"]
    renew = "SELECT id FROM assent_renew_leases(%s, %s, interval '1 day')"
    for fence in (turn.fence - 1, turn.fence + 1):
        assert rows(database_urls.app, renew, [turn.id], [fence]) == []
    assert theirs.rows(admin)["turn"] == before
    assert rows(database_urls.app, renew, [turn.id], [turn.fence]) == [(turn.id,)]


def test_an_announcement_writes_toolsets_and_nothing_else(
    theirs: World, admin: "psycopg.Connection[Any]", database_urls: DatabaseUrls
) -> None:
    before = theirs.rows(admin)
    payload = json.dumps([{"name": "orders", "tools": [], "digest": "1", "workspaces": None, "seen_at": "1999-01-01"}])
    rows(database_urls.app, "SELECT assent_announce_toolsets(%s, false, 1.0)", payload)
    assert rows(database_urls.app, "SELECT name, digest FROM toolset") == [("orders", "1")]
    assert theirs.rows(admin) == before


def test_everything_else_needs_the_workspace(theirs: World, database_urls: DatabaseUrls) -> None:
    assert rows(database_urls.app, "SELECT id FROM session") == []
    assert key_lookup.authenticate(theirs.key, None)
