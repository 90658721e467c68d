"""Requests about environments: Assent's own workers, which have no options, or the client's workers."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator

from api.door.requests import Body, Description, Metadata, MetadataPatch, Name, Paged, examples, not_null


def _empty(value: Any) -> Any:
    if value:
        raise ValueError("must be empty or left out: the workers run tools without network and without extra packages.")
    return value


class Networking(Body):
    """`limited` without any host: the workers run tools without network."""

    type: Literal["limited"]
    allow_mcp_servers: bool | None = None
    allow_package_managers: bool | None = None
    allowed_hosts: list[str] | None = None

    _closed = field_validator("allow_mcp_servers", "allow_package_managers", "allowed_hosts")(_empty)


class Packages(Body):
    """No packages."""

    type: Literal["packages"] | None = None
    apt: list[str] | None = None
    cargo: list[str] | None = None
    gem: list[str] | None = None
    go: list[str] | None = None
    npm: list[str] | None = None
    pip: list[str] | None = None

    _none = field_validator("apt", "cargo", "gem", "go", "npm", "pip")(_empty)


def _networking(value: Any) -> Any:
    if isinstance(value, dict) and value.get("type") == "unrestricted":
        raise ValueError('the workers run tools without network: leave it out, or send {"type": "limited"}.')
    return value


class Cloud(Body):
    """Assent's own workers."""

    type: Literal["cloud"]
    networking: Annotated[Networking | None, BeforeValidator(_networking)] = None
    packages: Packages | None = None


class SelfHosted(Body):
    """The client's own workers, which poll for work."""

    type: Literal["self_hosted"]


Config = Annotated[Cloud | SelfHosted, Field(discriminator="type")]


class EnvironmentFields(Body):
    """The fields that creating and updating share."""

    config: Config | None = None
    description: Description | None = None
    scope: Literal["organization"] | None = None


class EnvironmentCreate(EnvironmentFields):
    """A new environment."""

    model_config = examples(
        {"name": "Production"},
        {"name": "Build machines", "config": {"type": "self_hosted"}},
    )

    name: Name
    metadata: Metadata | None = None


class EnvironmentUpdate(EnvironmentFields):
    """Changes of an environment. A field that is left out is kept, and metadata is a patch."""

    model_config = examples(
        {"description": "For agents that deploy."},
    )

    name: Name | None = None
    metadata: MetadataPatch | None = None

    _no_null = field_validator("name", mode="before")(not_null)

    def changes(self) -> dict[str, Any]:
        """Return the fields that the request sets. A configuration is reduced to its `type`, since no type has options."""
        changes = self.sent({"name": self.name, "description": self.description, "metadata": self.metadata or {}})
        return changes | ({"type": self.config.type} if self.config else {})


class EnvironmentList(Paged):
    """GET /v1/environments."""

    include_archived: bool = False
