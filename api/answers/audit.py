"""The audit as we answer it."""

from typing import Any, Literal

from api.answers.base import Answer, Time
from models.audit.verifying.verdict import Kind


class AuditAct(Answer):
    """One act: who did what, when, to what, from where. The export spells it as it is hashed."""

    type: Literal["audit_act"]
    chain: str
    """The session that it belongs to, or the workspace."""
    seq: int
    session_id: str | None
    principal: str
    address: str | None
    action: str
    subject_id: str
    details: dict[str, Any]
    """As they are chained: of each text a salted digest, in `texts`."""
    texts: dict[str, str | None]
    """What people wrote: names, messages, rules. Null if it is erased."""
    hash: str
    created_at: Time


class AuditPublicKey(Answer):
    """A key whose signatures count here: 32 bytes in base64. Compare it with one that came another way."""

    id: str
    public_key: str


class AuditSignedHead(Answer):
    """A signed seal. Keep it elsewhere: any later state of the audit can be held against it."""

    workspace_id: str
    seq: int
    hash: str
    key_id: str
    signature: str
    """Ed25519, in base64, of four lines: `assent audit seal 1`, the workspace's id, `seq`, `hash`; no line end after the last."""
    created_at: Time


class AuditHead(Answer):
    """The end of the workspace's chain, and its newest signed seal."""

    type: Literal["audit_head"]
    workspace_id: str
    seq: int
    hash: str
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
    workspace_id: str
    intact: bool
    acts: int
    chains: int
    seals: int
    problems: list[AuditProblem]
    """The first hundred."""
    problems_found: int
    unsealed: AuditUnsealed
    signed: AuditSignedHead | None
    keys: list[AuditPublicKey]
    notes: list[str]


class AuditErasure(Answer):
    """Texts that are gone from the audit. Their digests stay in the chain, and an act says who erased them."""

    type: Literal["audit_erasure"]
    texts: int
    acts: dict[str, list[int]]
    """By chain, the acts that had them."""
    has_more: bool
    """Whether to send the same once more: each request erases the texts of at most 1000 acts."""


class AuditLine(Answer):
    """A line of the export."""
