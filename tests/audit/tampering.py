"""What somebody can do who may write to the database, and knows how its chains are made."""

import json
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import dict_row
from rows.stage import Stage

from models.audit import seal_key, seals, signer, verifying
from models.audit.acts import GENESIS, link
from models.audit.verifying import Report


def act(stage: Stage) -> str:
    """A session in which much has happened: about ten acts."""
    session_id = stage.session(bash="always_ask")
    asked = stage.propose(session_id)
    stage.confirm(session_id, asked.id)
    stage.run_call(asked)
    stage.reply(session_id, {"type": "text", "text": "Done."})
    return session_id


def sealed(stage: Stage) -> None:
    """Seal everything of the workspace, as the sweep does the first time."""
    chains = seals.grown(None).chains.get(stage.workspace_id, [])
    with signer.signer() as by:
        assert seals.seal(stage.workspace_id, chains, by)


def verified(stage: Stage, **more: Any) -> Report:
    """What a verification of the database finds."""
    return verifying.verify(stage.workspace_id, verifying.walk(stage.workspace_id), seal_key.known(), **more)


def named(report: Report) -> list[tuple[str, str, int, int]]:
    """The problems, without their words."""
    return [(problem.kind, problem.chain, problem.first, problem.last) for problem in report.problems]


@dataclass
class Intruder:
    """Hands on the rows, past every trigger and policy."""

    db: "psycopg.Connection[Any]"
    workspace_id: str

    def do(self, text: Any, *values: Any) -> None:
        """One statement, which must hit something."""
        assert self.db.execute(text, values).rowcount, "nothing was hit"

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

    def chain_anew(self, chain: str) -> None:
        """Make the hashes of all of a chain's rows fit again, and the head on its session's or workspace's row."""
        head = GENESIS
        for row in self.rows(chain):
            head = link(head, row)
            self.db.execute("UPDATE audit SET hash = decode(%s, 'hex') WHERE chain = %s AND seq = %s", [head, chain, row["seq"]])
        for table in ("session", "workspace"):
            said = f"UPDATE {table} SET audit_seq = %s, audit_head = decode(%s, 'hex') WHERE id = %s"
            self.db.execute(said, [self.length(chain), head, chain])

    def forge_everything(self, principal: str) -> None:
        """Rewrite who decided, in every chain of the workspace, so that no seal shows that there was another past.

        The seals' heads fit the new chains, no seal names a key, and no signature is left.
        """
        chains = [row[0] for row in self.db.execute("SELECT DISTINCT chain FROM audit WHERE chain LIKE 'sesn_%'")]
        for chain in chains:
            self.do("UPDATE audit SET principal = %s WHERE chain = %s AND action = 'approval.decided'", principal, chain)
            self.chain_anew(chain)
        for row in self.rows(self.workspace_id):
            if row["action"] == seals.SEALED:
                heads = {chain: [seq, self.rows(chain)[seq - 1]["hash"]] for chain, (seq, _) in row["details"]["heads"].items()}
                forged = json.dumps({"heads": heads, "key_id": None})
                self.do("UPDATE audit SET details = %s WHERE chain = %s AND seq = %s", forged, self.workspace_id, row["seq"])
        self.chain_anew(self.workspace_id)
        self.db.execute("DELETE FROM seal")

    def insert(self, chain: str, seq: int, before: str) -> str:
        """Put an act into a chain behind the hash `before`, with a hash that fits. Returns it."""
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
