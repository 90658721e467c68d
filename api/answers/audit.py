"""The audit as we answer it."""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from api.answers.base import Answer, SessionId, Time, WorkspaceId
from api.examples import IDS, TIME
from models.audit.verifying.verdict import Kind


class AuditAct(Answer):
    """One act: who did what, when, to what, from where. The export spells it as it is hashed."""

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


class AuditPublicKey(Answer):
    """A key whose signatures count here: 32 bytes in base64. Compare it with one that came another way."""

    id: str = Field(examples=["9f86d081884c7d65"])
    public_key: str = Field(examples=["11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="])


class AuditSignedHead(Answer):
    """A signed seal. Keep it elsewhere: any later state of the audit can be held against it."""

    workspace_id: WorkspaceId
    seq: int
    hash: str = Field(examples=["c4" * 32])
    key_id: str
    signature: str
    """Ed25519, in base64, of four lines: `assent audit seal 1`, the workspace's id, `seq`, `hash`; no line end after the last."""
    created_at: Time


class AuditHead(Answer):
    """The end of the workspace's chain, and its newest signed seal."""

    type: Literal["audit_head"]
    workspace_id: WorkspaceId
    seq: int
    hash: str = Field(examples=["c4" * 32])
    signed: AuditSignedHead | None
    keys: list[AuditPublicKey]


class AuditProblem(Answer):
    """Something that is not as it was written."""

    kind: Kind
    chain: str
    first_seq: int
    last_seq: int
    message: str


class AuditUnsealed(Answer):
    """Acts that no seal speaks of yet: these could still be changed or cut off unnoticed."""

    acts: int
    since: Time | None


class AuditVerification(Answer):
    """What a verification found."""

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
    keys: list[AuditPublicKey]
    notes: list[str] = Field(examples=[[]])


class AuditErasure(Answer):
    """Texts that are gone from the audit. Their digests stay in the chain, and an act says who erased them."""

    type: Literal["audit_erasure"]
    texts: int
    acts: dict[str, list[int]] = Field(examples=[{IDS["session_id"]: [3]}])
    """By chain, the acts whose texts were erased."""
    has_more: bool
    """Whether texts are left: a request erases the texts of at most 1000 acts. Send the same request again."""


class AuditLine(Answer):
    """A line of the export. The first line describes the file, and each other line is an act or the head of a chain."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"assent_audit": 1, "workspace_id": IDS["workspace_id"], "exported_at": TIME}]}
    )
