"""A workspace with a row in every table, and requests with its key."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
from doors.served import MODEL, key
from flask import Flask
from flask.testing import FlaskClient
from people import group, member
from psycopg import sql
from rows.stage import Stage, call
from rows.voting import ask, vote
from werkzeug.test import TestResponse

from models.audit import sealing, signer
from models.audit.anchors import AuditAnchor
from models.database import clock, failure, ids
from models.database.tables import Base
from models.database.transactions import transaction
from models.flow.spend import limits
from models.notices.channel import Channel, NewChannel
from models.notices.flood import Flood
from models.notices.link import issue
from models.notices.notification import Notification
from models.notices.slack_reply import Clicker, SlackReply
from models.operate import late_sums
from models.operate.insights import adding
from models.operate.insights.adding import ClosedAsk
from models.outbox import removal
from models.outbox.approval_change import ApprovalChange
from models.outbox.delivery import Delivery
from models.outbox.endpoint import Endpoint, NewEndpoint
from models.people.delegation import Delegation, Terms
from models.people.invitation import Invitation, Invitee
from models.people.passkey import Credential, Passkey
from models.people.person import Identity
from models.people.slack_user import SlackUser
from models.session.approval.evidence import Evidence
from models.session.approval.grant import Grant
from models.session.approval.grant_use import GrantUse
from models.session.archive.part import ArchiveContent, ArchivePart
from models.session.thread.inline_agent import InlineAgent
from models.session.thread.row import own_id
from models.session.tool_call.row import ToolCall
from models.session.turn.fold import Fold
from models.workspace.api_key import ApiKey, NewKey
from models.workspace.provider_key import ProviderKey

ORGANIZATION = {"organization", "ceremony"}
"""Tables without a workspace: see tests/walls/test_people_are_seen_by_their_workspaces.py."""
TABLES = sorted(set(Base.metadata.tables) - {"toolset", "metric"} - ORGANIZATION)
"""`toolset` belongs to the operator, and every workspace reads it. `metric` is the operator's alone."""


class World:
    """One workspace with a row in every table. `ids` are ids of its rows, by the names of the routes' parameters."""

    def __init__(self, app: Flask) -> None:
        self.stage = Stage()
        self.workspace_id = self.stage.workspace_id
        self.client: FlaskClient = app.test_client()
        self.key = key(self.stage)
        self.session_id = self.stage.session(bash="always_ask", read="always_allow")
        self.agent_id = self.stage.read(self.session_id).agent_id
        self.stage.message(self.session_id)
        asked, allowed = self.stage.reply(self.session_id, call(), call("read", file_path="x"))
        self.stage.finish_call(self.stage.begin_call(allowed), "its ends", whole=b"all of it")
        self.stage.list_tools("https://tools.example/mcp")
        self.hosted_id = self.stage.session(self_hosted=True, bash="always_allow")
        self.stage.message(self.hosted_id)
        self.stage.reply(self.hosted_id, call())
        granted_id = self.stage.session()
        self.stage.message(granted_id)
        for tool_call, scope in zip(self.stage.reply(granted_id, call(), call()), ("session", "always"), strict=True):
            self.stage.confirm(granted_id, tool_call.id, scope=scope)
        late_sums.add_up(self.workspace_id)
        self.resting_id = self.stage.session()
        self.ids = {
            "session_id": self.session_id,
            "approval_id": self.stage.approvals(self.session_id)[0].id,
            "environment_id": self.stage.read(self.hosted_id).environment_id,
            "tool_use_id": asked.id,
        }
        answer = self.ask("POST", "/v1/agents", {"name": "Kept", "model": MODEL}, **{"idempotency-key": "k"})
        assert answer.status_code == 200, answer.text
        self.ids["agent_id"] = answer.get_json()["id"]
        self.ids["grant_id"] = self._first("/v1/grants")
        with transaction(self.workspace_id) as db:
            self.ids["api_key_id"] = ApiKey.create(db, NewKey("Spare"))[0].id
        self.ids["work_id"] = self._first(f"/v1/environments/{self.ids['environment_id']}/work")
        with signer.signer() as by:
            assert sealing.seal(self.workspace_id, {self.session_id: 1}, by)
        with transaction(self.workspace_id) as db:
            [grant] = db.find(Grant, "WHERE scope = 'always'")
            db.insert(GrantUse(id=ids.new("guse"), workspace_id=self.workspace_id, grant_id=grant.id, used_at=clock.now(db)))
            db.insert(AuditAnchor(workspace_id=self.workspace_id, seq=1, created_at=clock.now(db)))
        failure.step_back("rescue", self.session_id, self.workspace_id, "ValueError")
        with transaction(self.workspace_id) as db:
            removal.begin(db, "endpoint", ids.new("whep"))
        with transaction(self.workspace_id) as db:
            Evidence.keep(db, self.ids["approval_id"], self.session_id, {"directory": "src"})
        self._people()
        self._webhooks()
        self._votes()
        self._channels()
        self._provider_key()
        self._fold()
        self._part()
        self._inline_agent()
        self._spend_limit()
        self._sums()
        self._flood()
        self.ids["thread_id"] = self._first(f"/v1/sessions/{self.session_id}/threads")

    def _people(self) -> None:
        """A member of a group, with a passkey, and an invitation."""
        self.ids["rbac_group_id"] = group(self.stage)
        self.anna = member(self.stage, "approver", groups=[self.ids["rbac_group_id"]])
        self.ids["user_id"] = self.anna.person_id
        by = self.anna.principal
        with transaction(self.workspace_id) as db:
            credential = f"credential of {self.anna.person_id}".encode()
            Passkey.add(db, by.person_id, Credential(id=credential, public_key=b"key", sign_count=0), name="Phone", by=by)
            slack_user = SlackUser.of(db, "T0TEAM", "U0ANNA", "anna")
            self.ids["slack_user_id"] = slack_user.id
            SlackUser.link(db, str(SlackUser.new_link(db, slack_user.id)), by)
            Identity.add(db, "https://issuer.example", by.person_id, by.person_id)
            SlackReply.put(db, Clicker("C0ROOM", "U0ANNA", slack_user.id), "No.")
            self.ids["invite_id"] = Invitation.create(db, Invitee(f"{self.workspace_id}@example.com", "viewer"), by=by)[0].id

    def _webhooks(self) -> None:
        """An endpoint, and a delivery that has failed."""
        with transaction(self.workspace_id) as db:
            endpoint, _ = Endpoint.create(
                db,
                self.stage.principal,
                NewEndpoint(url="https://example.com", enabled_events=["agent.archived"]),
            )
            delivery = Delivery.test(db, endpoint, "agent.archived")
            db.move(delivery, "running", fence=1)
            db.move(delivery, "failed", ended_at=delivery.created_at)
            self.ids |= {"webhook_id": endpoint.id, "delivery_id": delivery.id}

    def _channels(self) -> None:
        """A channel, a notification, and a change that waits for its notifications."""
        with transaction(self.workspace_id) as db:
            channel = Channel.create(db, self.stage.principal, NewChannel(kind="mail", address="ops@example.com"))
            self.ids["channel_id"] = channel.id
            now = channel.created_at
            about = {"workspace_id": self.workspace_id, "session_id": self.session_id, "approval_id": self.ids["approval_id"]}
            change = ApprovalChange(id="unused", **about, stage="requested", seq=1)
            db.insert_many(Notification, [Notification.of_change(change, channel, now, now)])
            Notification.test(db, channel)
        session_id = self.stage.session(approval={"approvers": [f"user:{self.anna.person_id}"]})
        self.stage.message(session_id)
        self.stage.reply(session_id, call())

    def _provider_key(self) -> None:
        """A provider's key of the workspace's own."""
        now = datetime.now(UTC)
        row = {"id": ids.new("pkey"), "provider": "anthropic", "ciphertext": "k.AAAA", "hint": "", "created_by": "system:test"}
        with transaction(self.workspace_id) as db:
            db.insert(ProviderKey(workspace_id=self.workspace_id, created_at=now, **row))
        self.ids["provider_key_id"] = row["id"]

    def _fold(self) -> None:
        """A summary of old turns."""
        now = datetime.now(UTC)
        row = {
            "session_id": self.resting_id,
            "thread_id": own_id(self.resting_id),
            "kind": "turns",
            "through": 0,
            "seq": 0,
            "turn_id": "turn_1",
            "model": "m",
        }
        summary = {"type": "summary", "text": "They talked."}
        with transaction(self.workspace_id) as db:
            db.insert(Fold(workspace_id=self.workspace_id, created_at=now, summary=summary, provider="anthropic", **row))

    def _part(self) -> None:
        """A part of the archive, with its content."""
        now, part_id = datetime.now(UTC), ids.new("part")
        of_session = {"id": part_id, "workspace_id": self.workspace_id, "session_id": self.resting_id, "stored_in": "rows"}
        with transaction(self.workspace_id) as db:
            db.insert(ArchivePart(**of_session, first_seq=0, last_seq=0, until=now, rows=0, created_at=now, due_at=now))
            db.insert(ArchiveContent(part_id=part_id, workspace_id=self.workspace_id, content=b"content"))

    def _inline_agent(self) -> None:
        """An agent that a coordinator defined."""
        key = {"session_id": self.resting_id, "thread_id": "sthr_inline"}
        with transaction(self.workspace_id) as db:
            db.insert(InlineAgent(workspace_id=self.workspace_id, body={"name": "Inline"}, created_at=datetime.now(UTC), **key))

    def _spend_limit(self) -> None:
        """A limit of a person without sessions."""
        with transaction(self.workspace_id) as db:
            scope = ("user", self.ids["user_id"])
            self.ids["spend_limit_id"] = limits.set_limit(db, self.stage.principal, scope, "daily", Decimal(100)).id

    def _flood(self) -> None:
        """A person for whom too many approvals wait."""
        with transaction(self.workspace_id) as db:
            Flood.begin(db, self.anna.person_id, datetime.now(UTC))

    def _sums(self) -> None:
        """Sums of an approval that was closed."""
        ask = ClosedAsk(self.workspace_id, "allowed", "inbox", 5.0, "bash", self.agent_id, self.ids["user_id"], datetime.now(UTC))
        with transaction(role="system") as db:
            adding.add(db, [ask])

    def _votes(self) -> None:
        """A vote, a delegation, and a halt and a legal hold that are over."""
        self.dora = member(self.stage)
        until = datetime.now(UTC) + timedelta(days=1)
        with transaction(self.workspace_id) as db:
            people = {"from_person_id": self.anna.person_id, "to_person_id": self.dora.person_id}
            delegation = Delegation.give(db, self.anna.principal, Terms(**people, group_id=None, starts_at=None, ends_at=until))
            self.ids["delegation_id"] = delegation.id
        approval = ask(self.stage, self.stage.session(approval={"required_approvals": 2}))
        vote(self.stage, self.anna, approval)
        with transaction(self.workspace_id) as db:
            issue(db, approval, self.anna.person_id)
        for method in ("POST", "DELETE"):
            assert self.ask(method, "/v1/halt", {}).status_code == 200
        hold = self.ask("POST", "/v1/legal_holds", {"session_id": self.resting_id, "reason": "A case."}).get_json()
        self.ids["legal_hold_id"] = hold["id"]
        assert self.ask("DELETE", f"/v1/legal_holds/{hold['id']}").status_code == 200

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> TestResponse:
        """One request with this workspace's key, which has all scopes."""
        return self.client.open(path, method=method, json=body, headers={"x-api-key": self.key} | headers)

    def _first(self, path: str) -> str:
        return str(self.ask("GET", path).get_json()["data"][0]["id"])

    def built_in(self) -> str:
        """The environment that every workspace has."""
        with transaction(self.workspace_id) as db:
            return str(db.value("SELECT id FROM environment WHERE built_in"))

    def call(self) -> ToolCall:
        """The call that waits for a person."""
        return self.stage.get(ToolCall, self.ids["tool_use_id"])

    def rows(self, admin: "psycopg.Connection[Any]") -> dict[str, list[str]]:
        """All rows of the workspace by table, as texts. One prepared statement, because tests call this after each request."""
        parts = [
            sql.SQL("SELECT {}, t::text FROM {} t WHERE workspace_id = %(workspace)s").format(table, sql.Identifier(table))
            for table in TABLES
        ]
        statement = sql.SQL(" UNION ALL ").join(parts) + sql.SQL(" ORDER BY 1, 2")
        rows: dict[str, list[str]] = {table: [] for table in TABLES}
        for table, row in admin.execute(statement, {"workspace": self.workspace_id}, prepare=True):
            rows[table].append(row)
        return rows


def rows(url: str, text: str, *values: Any, workspace: str = "wrkspc_nobody") -> list[Any]:
    """The rows that a statement returns to a role that works in a workspace."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("SELECT set_config('assent.workspace', %s, false)", [workspace])
        cursor = db.execute(text, values)
        return cursor.fetchall() if cursor.description else []
