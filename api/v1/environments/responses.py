"""Responses about environments."""

from typing import Annotated, Literal, Self

from pydantic import Field, SerializeAsAny

from api.door.responses import Empty, EnvironmentId, Metadata, ResponseModel, Time
from models.workspace import environment


class LimitedNetworking(ResponseModel):
    """No network."""

    type: Literal["limited"]
    allow_mcp_servers: Literal[False]
    allow_package_managers: Literal[False]
    allowed_hosts: Empty


class NoPackages(ResponseModel):
    """No packages."""

    type: Literal["packages"]
    apt: Empty
    cargo: Empty
    gem: Empty
    go: Empty
    npm: Empty
    pip: Empty


class CloudConfig(ResponseModel):
    """Assent's own workers."""

    type: Literal["cloud"]
    networking: LimitedNetworking
    packages: NoPackages


class SelfHostedConfig(ResponseModel):
    """The client's workers, which poll for work."""

    type: Literal["self_hosted"]


EnvironmentConfig = Annotated[CloudConfig | SelfHostedConfig, Field(discriminator="type")]


class Environment(ResponseModel):
    """Where the tools of a session run."""

    id: EnvironmentId
    type: Literal["environment"]
    name: str = Field(examples=["Production"])
    description: str | None
    config: SerializeAsAny[EnvironmentConfig]
    scope: Literal["organization"]
    metadata: Metadata
    built_in: bool
    created_at: Time
    updated_at: Time
    archived_at: Time | None

    @classmethod
    def of(cls, row: environment.Environment) -> Self:
        """Return an environment."""
        return cls.from_row(row, metadata=row.metadata_)


class EnvironmentDeleted(ResponseModel):
    """The environment is deleted."""

    id: EnvironmentId
    type: Literal["environment_deleted"]
