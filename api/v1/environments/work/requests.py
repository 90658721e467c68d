"""Requests of the workers of self-hosted environments."""

from pydantic import Field

from api.door.requests import Body, MetadataPatch, QueryString, examples


class WorkPoll(QueryString):
    """GET /v1/environments/{id}/work/poll. Times in milliseconds."""

    block_ms: int | None = Field(None, ge=1, le=999)
    reclaim_older_than_ms: int = Field(5000, ge=0, le=86_400_000)


class Heartbeat(QueryString):
    """The query of POST .../work/{id}/heartbeat. Without `expected_last_heartbeat` the last heartbeat is not compared."""

    desired_ttl_seconds: int | None = Field(None, ge=10, le=3600)
    expected_last_heartbeat: str | None = Field(None, max_length=64)


class WorkStop(Body):
    """How to stop a piece of work."""

    model_config = examples(
        {"force": True},
    )

    force: bool | None = None


class WorkUpdate(Body):
    """Changes of a piece of work. Metadata is a patch."""

    model_config = examples(
        {"metadata": {"host": "worker-7"}},
    )

    metadata: MetadataPatch
