"""An intruder who can write to the database and knows how its chains are built."""

import json
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row
from rows.stage import Stage

from models.audit import seal_key, sealing, seals, signer, verifying
from models.audit.acts import BEGINNING, GENESIS, link
from models.audit.verifying import AuditReport


def act(stage: Stage) -> str:
    """Run a session with one call, which is about ten acts. Returns the session's id."""
    session_id = stage.session(bash="always_ask")
    asked = stage.propose(session_id)
    stage.confirm(session_id, asked.id)
    stage.run_call(asked)
    stage.reply(session_id, {"type": "text", "text": "Done."})
    return session_id


def sealed(stage: Stage) -> None:
    """Seal all chains of the workspace, as the first sweep does."""
    chains = sealing.grown(BEGINNING, {}).chains.get(stage.workspace_id, {})
    with signer.signer() as by:
        assert sealing.seal(stage.workspace_id, chains, by)


def verified(stage: Stage, **more: Any) -> AuditReport:
    """Verify the workspace's audit in the database."""
    return verifying.verify(stage.workspace_id, verifying.walk(stage.workspace_id), seal_key.trusted_keys(), **more)


def named(report: AuditReport) -> list[tuple[str, str, int, int]]:
    """The problems of a report, without their messages."""
    return [(problem.kind, problem.chain, problem.first, problem.last) for problem in report.problems]


@dataclass
class Intruder:
    """Changes rows, without triggers and policies."""

    db: "psycopg.Connection[Any]"
    workspace_id: str

    def do(self, text: Any, *values: Any) -> None:
        """Run one statement, which must affect a row."""
        assert self.db.execute(text, values).rowcount, "no row was affected"

    def rows(self, chain: str) -> list[dict[str, Any]]:
        """A chain's rows, in order."""
        with self.db.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(
                "SELECT *, encode(hash, 'hex') AS hash FROM audit WHERE chain = %s ORDER BY seq", [chain]
            ).fetchall()

    def length(self, chain: str) -> int:
        """How many acts a chain has."""
        return len(self.rows(chain))

    def move(self, chain: str, seq: int, to: int) -> None:
        """Give an act, with its texts, another number."""
        self.do("UPDATE audit SET seq = %s WHERE chain = %s AND seq = %s", to, chain, seq)
        self.db.execute("UPDATE audit_text SET seq = %s WHERE chain = %s AND seq = %s", [to, chain, seq])

    def rechain(self, chain: str) -> None:
        """Recompute the hashes of a chain's rows, and the head in its session's or workspace's row."""
        head = GENESIS
        for row in self.rows(chain):
            head = link(head, row)
            self.db.execute("UPDATE audit SET hash = decode(%s, 'hex') WHERE chain = %s AND seq = %s", [head, chain, row["seq"]])
        for table in ("session", "workspace"):
            statement = f"UPDATE {table} SET audit_seq = %s, audit_head = decode(%s, 'hex') WHERE id = %s"
            self.db.execute(statement, [self.length(chain), head, chain])

    def forge_everything(self, principal: str) -> None:
        """Replace the principal of every decision, and make chains and seals consistent with it.

        No seal names a key afterwards, and no signature is left.
        """
        chains = [row[0] for row in self.db.execute("SELECT DISTINCT chain FROM audit WHERE chain LIKE 'sesn_%'")]
        for chain in chains:
            self.do("UPDATE audit SET principal = %s WHERE chain = %s AND action = 'approval.decided'", principal, chain)
            self.rechain(chain)
        for row in self.rows(self.workspace_id):
            if row["action"] == seals.SEALED:
                heads = {chain: [seq, self.rows(chain)[seq - 1]["hash"]] for chain, (seq, _) in row["details"]["heads"].items()}
                forged = json.dumps({"heads": heads, "key_id": None})
                self.do("UPDATE audit SET details = %s WHERE chain = %s AND seq = %s", forged, self.workspace_id, row["seq"])
        self.rechain(self.workspace_id)
        self.db.execute("DELETE FROM seal")

    def insert(self, chain: str, seq: int, before: str) -> str:
        """Insert an act after the hash `before`. Returns the new act's hash, which fits the chain."""
        row = self.rows(self.workspace_id)[0] | {
            "chain": chain,
            "seq": seq,
            "action": "approval.decided",
            "details": {"by": "nobody"},
        }
        row["hash"] = link(before, row)
        names = ", ".join(row)
        marks = ", ".join(f"%({name})s" for name in row)
        self.db.execute(
            f"INSERT INTO audit ({names}) VALUES ({marks})",
            row | {"details": json.dumps(row["details"]), "hash": bytes.fromhex(row["hash"])},
        )
        hash_: str = row["hash"]
        return hash_
