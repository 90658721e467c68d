"""Requests about the audit."""

from pydantic import Field

from api.door.examples import IDS
from api.door.requests import Body, Created, Moment, QueryString, examples


class AuditList(Created):
    """GET /v1/audit: only acts that match every filter."""

    session_id: str | None = Field(None, max_length=128)
    action: str | None = Field(None, max_length=128)
    """The action, such as `approval.decided`."""
    principal: str | None = Field(None, max_length=256)
    """The principal, such as `api_key:key_...`."""
    subject_id: str | None = Field(None, max_length=128)


class AuditVerify(QueryString):
    """GET /v1/audit/verify."""

    session_id: str | None = Field(None, max_length=128)
    """Verify only the acts of this session, and the workspace's acts outside sessions."""
    signed_since: Moment | None = None
    """The time at which the first key was configured. A seal may be unsigned if the seal and all acts that it covers are older."""


class AuditExport(QueryString):
    """GET /v1/audit/export."""

    texts: bool = True
    """Whether the file holds the texts, or only their digests. Either file can be verified."""


class AuditErase(Body):
    """The acts whose texts are erased. Send `chain`, `principal` or both."""

    model_config = examples(
        {"chain": IDS["session_id"], "seq": 3},
        {"principal": f"api_key:{IDS['api_key_id']}"},
    )

    chain: str | None = Field(None, min_length=1, max_length=128)
    """A session's id, or the workspace's id for acts outside sessions."""
    seq: int | None = Field(None, ge=1, le=2**63 - 1)
    """One act of that chain."""
    principal: str | None = Field(None, min_length=1, max_length=256)
    """Acts of this principal only, such as `api_key:key_...`."""
