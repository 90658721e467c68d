"""Responses about the audit."""

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from api.door.examples import IDS, TIME
from api.door.responses import ResponseModel, SessionId, Time, WorkspaceId
from models.audit import acts, seal_key, seals
from models.audit.verifying import AuditReport
from models.audit.verifying.verdict import Kind, NewestAnchor, Problem
from models.workspace.row import Workspace


class AuditAct(ResponseModel):
    """One act: the principal, the action, the row, the address and the time. The export holds the exact fields that are hashed."""

    type: Literal["audit_act"]
    chain: str = Field(examples=[IDS["session_id"]])
    """The id of the session, or of the workspace for acts outside sessions."""
    seq: int
    session_id: SessionId | None
    principal: str = Field(examples=[f"api_key:{IDS['api_key_id']}"])
    address: str | None = Field(examples=["192.0.2.7"])
    action: str = Field(examples=["approval.decided"])
    subject_id: str = Field(examples=[IDS["approval_id"]])
    details: dict[str, Any] = Field(examples=[{"result": "allow", "shown_sha256": "5f" * 32}])
    """The details as they are hashed. Texts are replaced by salted digests, in `texts`."""
    texts: dict[str, str | None] = Field(examples=[{}])
    """The texts that people wrote: names, messages, rules. An erased text is null."""
    hash: str = Field(examples=["c4" * 32])
    created_at: Time

    @classmethod
    def of(cls, row: acts.Audit, texts: dict[str, str]) -> Self:
        """Return an act with those of its texts that are not erased."""
        return cls.from_row(
            row,
            session_id=None if row.chain == row.workspace_id else row.chain,
            address=row.address or texts.get(acts.CLIENT_ADDRESS),
            texts={name: texts.get(name) for name in row.details.get("texts", ())},
            created_at=row.at,
        )


class AuditPublicKey(ResponseModel):
    """A public key whose signatures this server accepts: 32 bytes in base64. Compare it with a copy from another source."""

    id: str = Field(examples=["9f86d081884c7d65"])
    public_key: str = Field(examples=["11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="])

    @classmethod
    def known(cls) -> list[Self]:
        """Return the public keys that the process knows."""
        return [cls(id=key.id, public_key=key.text) for key in seal_key.trusted_keys()]


class AuditSignedHead(ResponseModel):
    """A signed seal. Keep a copy elsewhere, and compare any later state of the audit with the copy."""

    workspace_id: WorkspaceId
    seq: int
    hash: str = Field(examples=["c4" * 32])
    key_id: str
    signature: str
    """The Ed25519 signature, in base64, of four lines: `assent audit seal 1`, the workspace's id, `seq`, `hash`. The last line has
    no line end."""
    created_at: Time

    @classmethod
    def of(cls, head: seals.SignedHead | None) -> "AuditSignedHead | None":
        """Return the seal, or None without a seal."""
        return cls.from_row(head, created_at=head.at) if head else None


class AuditHead(ResponseModel):
    """The end of the workspace's chain, and its newest signed seal."""

    type: Literal["audit_head"]
    workspace_id: WorkspaceId
    seq: int
    hash: str = Field(examples=["c4" * 32])
    signed: AuditSignedHead | None
    keys: list[AuditPublicKey]

    @classmethod
    def of(cls, row: Workspace, signed: seals.SignedHead | None) -> Self:
        """Return the end of the workspace's chain."""
        return cls(
            type="audit_head",
            workspace_id=row.id,
            seq=row.audit_seq,
            hash=row.audit_head,
            signed=AuditSignedHead.of(signed),
            keys=AuditPublicKey.known(),
        )


class AuditProblem(ResponseModel):
    """A sign that the audit was changed after it was written."""

    kind: Kind
    chain: str
    first_seq: int
    last_seq: int
    message: str

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return a problem."""
        return cls.from_row(problem, first_seq=problem.first, last_seq=problem.last)


class AuditUnsealed(ResponseModel):
    """Acts that no seal covers yet. Their change or removal would go unnoticed."""

    acts: int
    since: Time | None


class AuditAnchor(ResponseModel):
    """An anchor: what stays of acts that were cut. Its export has them."""

    seq: int
    """The number of the act `audit.anchored` in the workspace's chain."""
    principal: str = Field(examples=["person:anna"])
    """Who cut the acts."""
    export_sha256: str = Field(examples=["c4" * 32])
    """The SHA-256 of the export that has the acts."""
    created_at: Time

    @classmethod
    def of(cls, anchor: NewestAnchor | None) -> "AuditAnchor | None":
        """Return the anchor, or None if nothing was cut."""
        return cls.from_row(anchor, created_at=anchor.at) if anchor else None


class AuditVerification(ResponseModel):
    """The result of a verification."""

    type: Literal["audit_verification"]
    workspace_id: WorkspaceId
    intact: bool = Field(examples=[True])
    acts: int
    chains: int
    seals: int
    problems: list[AuditProblem] = Field(examples=[[]])
    """The first 100 problems."""
    problems_found: int = Field(examples=[0])
    unsealed: AuditUnsealed
    signed: AuditSignedHead | None
    anchor: AuditAnchor | None = Field(examples=[None])
    """The newest anchor, from which on the audit was verified. Null if nothing was cut."""
    cut_acts: int = Field(examples=[0])
    """The number of acts that are cut behind all anchors."""
    keys: list[AuditPublicKey]
    notes: list[str] = Field(examples=[[]])

    @classmethod
    def of(cls, report: AuditReport) -> Self:
        """Return the report of a verification."""
        return cls.from_row(
            report,
            problems=[AuditProblem.of(problem) for problem in report.problems],
            unsealed=AuditUnsealed(acts=report.unsealed, since=report.unsealed_since),
            signed=AuditSignedHead.of(report.signed),
            anchor=AuditAnchor.of(report.anchor),
            keys=AuditPublicKey.known(),
        )


class AuditErasure(ResponseModel):
    """The texts that were erased from the audit. Their digests stay in the chain, and an act records the principal."""

    type: Literal["audit_erasure"]
    texts: int
    acts: dict[str, list[int]] = Field(examples=[{IDS["session_id"]: [3]}])
    """The acts whose texts were erased, by chain."""
    has_more: bool
    """Whether matching texts are left: a request erases the texts of at most 1000 acts. If so, send the same request again."""
    on_hold: int = Field(examples=[0])
    """Matching texts that are not erased, since their session is on a legal hold."""


class AuditLine(ResponseModel):
    """A line of the export. The first line describes the file, and each other line is an act or the head of a chain."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={"examples": [{"assent_audit": 1, "workspace_id": IDS["workspace_id"], "exported_at": TIME}]},
    )
