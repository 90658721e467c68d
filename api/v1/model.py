"""The model of an agent, and a workspace's defaults for it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from api.door.requests import Body, Name, Unsupported, twice
from models.errors import Invalid
from models.settings import providers

MOST_FALLBACKS = 5


def _unrepeated(names: list[str]) -> list[str]:
    if name := twice(names):
        raise ValueError(f"names {name[:80]!r} twice; leave one out.")
    return names


def _known_provider(name: str) -> str:
    if providers.provider_named(name) is None:
        names = ", ".join(entry.name for entry in providers.registry())
        raise ValueError(f"there is no provider {name[:80]!r} on this server: use {names}.")
    return name


Provider = Annotated[str, AfterValidator(_known_provider)]
Fallbacks = Annotated[list[Name], Field(max_length=MOST_FALLBACKS), AfterValidator(_unrepeated)]
Excluded = Annotated[list[Provider], Field(max_length=100), AfterValidator(_unrepeated)]
Level = Literal["low", "medium", "high", "xhigh", "max"]


class Effort(Body):
    """How hard the model works."""

    type: Level


class Model(Body):
    """A model, with alternatives for the time in which it does not respond."""

    id: Name
    effort: (
        Annotated[
            Effort, BeforeValidator(lambda e: {"type": e} if isinstance(e, str) else e, json_schema_input_type=Level | Effort)
        ]
        | None
    ) = None
    """How hard the model works. Left out: the model's default."""
    fallbacks: Fallbacks | None = None
    """Models to try in this order if the model is overloaded, limits the rate, times out or is gone. Default: the workspace's."""
    exclude_providers: Excluded | None = None
    """Providers that are never used for this agent."""
    inference_geo: Unsupported = None
    speed: Literal["standard"] | None = None

    @model_validator(mode="after")
    def _check(self) -> "Model":
        for field, name in (("id", self.id), *(("fallbacks", name) for name in self.fallbacks or [])):
            entry = check_served(field, name, self.exclude_providers or [])
            if self.effort and not entry.abilities.effort:
                raise ValueError(f"effort: provider {entry.name} cannot set the effort of {name!r}; leave effort out.")
        return self

    def normal(self) -> dict[str, Any]:
        """Return the model as versions of agents store it."""
        return self.model_dump(include={"id", "effort", "fallbacks", "exclude_providers"}, exclude_none=True)


def check_served(field: str, model: str, excluded: list[str]) -> providers.ProviderEntry:
    """Return the entry of the provider that serves a model. Raises ValueError, with the field, without such a provider."""
    entry = providers.serving(model, excluded)
    if entry is None:
        globs = ", ".join(glob for entry in providers.registry() if entry.name not in excluded for glob in entry.models)
        raise ValueError(f"{field}: no provider serves {model!r}; those of this server serve {globs[:500] or 'nothing'}.")
    return entry


def check_override(model: Mapping[str, Any]) -> None:
    """Raise Invalid if no provider serves a session's model, which has the exclusions of the session's agent."""
    for field, name in (("id", model["id"]), *(("fallbacks", name) for name in model.get("fallbacks") or [])):
        try:
            check_served(f"agent.model.{field}", name, model.get("exclude_providers") or [])
        except ValueError as error:
            path, _, fault = str(error).partition(": ")
            raise Invalid(path, f"{fault} The agent's excluded providers stay excluded.") from None


ModelParam = Annotated[
    Model, BeforeValidator(lambda m: {"id": m} if isinstance(m, str) else m, json_schema_input_type=Name | Model)
]


class ModelDefaults(Body):
    """The defaults for the models of the workspace's agents."""

    fallbacks: Fallbacks | None = None
    """The fallbacks of agents without fallbacks of their own."""
    exclude_providers: Excluded | None = None
    """Providers that are never used in this workspace, in addition to those that an agent excludes."""

    @model_validator(mode="after")
    def _check(self) -> "ModelDefaults":
        for name in self.fallbacks or []:
            check_served("fallbacks", name, self.exclude_providers or [])
        return self

    def normal(self) -> dict[str, Any]:
        """Return the defaults as the workspace stores them."""
        return self.model_dump(exclude_none=True)
