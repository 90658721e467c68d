"""Queries about the audit."""

from pydantic import Field

from api.requests.base import Created, Moment, Query


class AuditList(Created):
    """GET /v1/audit: what each act must be, of those that are given."""

    session_id: str | None = Field(None, max_length=128)
    action: str | None = Field(None, max_length=128)
    """Such as `approval.decided`."""
    principal: str | None = Field(None, max_length=256)
    """Such as `api_key:key_...`."""
    subject_id: str | None = Field(None, max_length=128)


class AuditVerify(Query):
    """GET /v1/audit/verify."""

    session_id: str | None = Field(None, max_length=128)
    """Only this session's acts, beside the workspace's own."""
    signed_since: Moment | None = None
    """When the first key was configured: seals that are older, and speak of nothing younger, may be unsigned."""
