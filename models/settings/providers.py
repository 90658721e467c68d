"""The registry of model providers: which provider serves a model, with which key variable, limits and prices.

`ASSENT_PROVIDERS` names a JSON file, `{"providers": [ENTRY, ...]}`; docs/providers.md explains the fields. Without it there is one
entry, Anthropic's, for every model. The file holds no keys, so that every process can read it: `api_key_env` names the variable
that only the turns hold. The first entry with a matching glob serves a model.
"""

import json
import logging
import os
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from models.pure.pricing.prices import Price
from models.settings import settings

log = logging.getLogger(__name__)

Effort = Literal["low", "medium", "high", "xhigh", "max"]
"""How hard a model works, from the least."""
MAX_FILE_BYTES = 1_000_000
_RESERVED = ("ASSENT_*", "DATABASE_*", "REDIS_*", "FLOWER_*", "PATH", "HOME", "*_PROXY", "*_proxy")
"""Variables that have another meaning, so that none of them can hold a provider's key."""
_SECRET_HEADERS = ("authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie")

Glob = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class ProvidersMisconfigured(Exception):
    """The registry's file cannot be used. The message names the entry and the field."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Limits(_Strict):
    """How long and how large a response may be."""

    max_tokens: int | None = Field(None, ge=1)
    """Output tokens of one response at most, below ASSENT_MAX_TOKENS."""
    seconds: float | None = Field(None, gt=0, le=3600)
    """Time of one response; ASSENT_MODEL_TIMEOUT_SECONDS by default."""
    silence_seconds: float | None = Field(None, gt=0, le=3600)
    """The longest wait for the next bytes. By default 60, and 300 for kind `openai`, whose models think in silence."""
    response_bytes: int | None = Field(None, ge=1000)
    """Size of one response; ASSENT_MODEL_RESPONSE_BYTES by default."""


class Abilities(_Strict):
    """What the provider's models can do. The API refuses agents and messages that need more."""

    images: bool = True
    documents: bool | None = None
    """PDF documents. By default only kind `anthropic` reads them."""
    effort: bool = True
    parallel_tool_calls: bool = True
    """False: the parameter `parallel_tool_calls` is never sent."""


class ProviderEntry(_Strict):
    """One entry of the registry."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
    kind: Literal["anthropic", "openai"]
    base_url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#]+[^\s?#]*$", max_length=2048)] | None = None
    api_key_env: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")] | None = None
    models: Annotated[list[Glob], Field(min_length=1, max_length=1000)]
    headers: dict[Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,128}$")], str] = {}
    prices: dict[Glob, dict[str, Any]] = {}
    """Dollars by globs of models: `{"llama-*": {"input": "0.2", "output": "0.6"}}`, as strings, per million tokens."""
    windows: dict[Glob, Annotated[int, Field(ge=1000)]] = {}
    """Tokens of input and reply together by globs of models: `{"llama-*": 32768}`."""
    limits: Limits = Limits()
    abilities: Abilities = Abilities()

    def __hash__(self) -> int:
        """Hash the entry, as a key of caches. Equal entries have equal fields."""
        return hash((self.name, self.kind, self.base_url))

    @field_validator("api_key_env")
    @classmethod
    def _no_setting(cls, value: str | None) -> str | None:
        if value and any(fnmatchcase(value, pattern) for pattern in _RESERVED):
            raise ValueError(f"{value} has another meaning; name a variable of the provider's own, such as LOCAL_KEY")
        return value

    @field_validator("headers")
    @classmethod
    def _no_secrets(cls, value: dict[str, str]) -> dict[str, str]:
        for header, text in value.items():
            if header.lower() in _SECRET_HEADERS:
                raise ValueError(f"{header} carries a key, and every process reads this file; use api_key_env")
            if not text.isascii() or not text.isprintable():
                raise ValueError(f"{header}: use printable ASCII characters")
        return value

    @field_validator("prices")
    @classmethod
    def _prices(cls, value: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        for model, prices in value.items():
            try:
                Price.configured(prices)
            except ValueError as error:
                raise ValueError(f"{model}.{error}") from None
        return value

    def serves(self, model: str) -> bool:
        """True if a glob of the entry matches the model's name."""
        return any(fnmatchcase(model, glob) for glob in self.models)

    def price(self, model: str) -> dict[str, Any] | None:
        """Return the operator's prices of a model, None if the entry names none."""
        return next((prices for glob, prices in self.prices.items() if fnmatchcase(model, glob)), None)

    def window(self, model: str) -> int | None:
        """Return the operator's window of a model, None if the entry names none."""
        return next((window for glob, window in self.windows.items() if fnmatchcase(model, glob)), None)

    @property
    def reads_documents(self) -> bool:
        """True if the provider's models read documents that are not text."""
        return self.kind == "anthropic" if self.abilities.documents is None else self.abilities.documents

    def reads(self, block: Mapping[str, Any]) -> bool:
        """True if the provider's models read a content block of a message."""
        source = (block.get("source") or {}).get("type")
        match block["type"]:
            case "image":
                return self.abilities.images
            case "document" if source != "text":
                return self.reads_documents and (self.kind == "anthropic" or source == "base64")
        return True

    @property
    def silence_seconds(self) -> float:
        """The longest wait for the next bytes of a response."""
        return self.limits.silence_seconds or (60 if self.kind == "anthropic" else 300)


class _File(_Strict):
    providers: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=100)]


def registry() -> tuple[ProviderEntry, ...]:
    """Return the entries in order. Raises ProvidersMisconfigured."""
    path = settings().providers
    return _read(path) if path else _anthropic_alone(settings().anthropic_base_url)


@cache
def _anthropic_alone(base_url: str | None) -> tuple[ProviderEntry, ...]:
    entry = ProviderEntry(name="anthropic", kind="anthropic", api_key_env="ANTHROPIC_API_KEY", models=["*"])
    return (entry.model_copy(update={"base_url": base_url or None}),)


@cache
def _read(path: Path) -> tuple[ProviderEntry, ...]:
    """Return the entries of a file in order. Raises ProvidersMisconfigured, whose message names the entry and the field."""
    where = f"ASSENT_PROVIDERS ({path})"
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ProvidersMisconfigured(f"{where}: cannot be read: {error.strerror}") from None
    if len(content) > MAX_FILE_BYTES:
        raise ProvidersMisconfigured(f"{where}: is longer than {MAX_FILE_BYTES} bytes")
    try:
        rows = _File.model_validate(json.loads(content)).providers
    except ValidationError as error:
        raise ProvidersMisconfigured(f'{where}: {_first(error)}. The file is {{"providers": [...]}}') from None
    except (ValueError, RecursionError) as error:
        raise ProvidersMisconfigured(f"{where}: is not JSON: {error}") from None
    return _entries(rows, where)


def _entries(rows: list[dict[str, Any]], where: str) -> tuple[ProviderEntry, ...]:
    entries: dict[str, ProviderEntry] = {}
    for number, row in enumerate(rows):
        label = f"providers[{number}]" + (f" ({row['name']})" if isinstance(row.get("name"), str) else "")
        try:
            entry = ProviderEntry.model_validate(row)
        except ValidationError as error:
            raise ProvidersMisconfigured(f"{where}: {label}: {_first(error)}") from None
        if entry.name in entries:
            raise ProvidersMisconfigured(f"{where}: {label}: name: is taken by an earlier entry; use another name")
        entries[entry.name] = entry
    return tuple(entries.values())


def _first(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in fault["loc"])
    message = fault["msg"].removeprefix("Value error, ")
    return f"{field}: {message}" if field else message


def serving(model: str, excluded: Collection[str] = ()) -> ProviderEntry | None:
    """Return the entry that serves a model, without the excluded providers; None if no provider does."""
    return next((entry for entry in registry() if entry.name not in excluded and entry.serves(model)), None)


def excluded(model: Mapping[str, Any], defaults: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the providers that an agent's `model` or its workspace's defaults exclude."""
    return frozenset(name for each in (model, defaults or {}) for name in each.get("exclude_providers") or [])


def block_in_words(block: Mapping[str, Any]) -> str:
    """Return words for a content block that a provider cannot read."""
    return "a document by its URL" if (block.get("source") or {}).get("type") == "url" else f"{block['type']} blocks"


def provider_named(name: str) -> ProviderEntry | None:
    """Return the entry of this name, or None."""
    return next((entry for entry in registry() if entry.name == name), None)


def key_variables() -> frozenset[str]:
    """Return the variables that hold providers' keys."""
    return frozenset(entry.api_key_env for entry in registry() if entry.api_key_env)


def check() -> None:
    """Exit with one line if the registry cannot be used. Call it at the start."""
    try:
        registry()
    except ProvidersMisconfigured as error:
        raise SystemExit(f"assent: {error}") from None


def check_keys() -> None:
    """Exit with one line if each provider needs a key and none is set. Call it at the start of the turns.

    Outside production it is only a warning. Keys of workspaces are rows: where there are no others, an entry has no `api_key_env`.
    """
    if any(not entry.api_key_env or os.environ.get(entry.api_key_env) for entry in registry()):
        return
    names = " or ".join(entry.api_key_env or "" for entry in registry())
    problem = f"no provider of models has a key: set {names} (docs/providers.md says how workspaces bring all keys)"
    if settings().environment == "production":
        raise SystemExit(f"assent: {problem}")
    log.warning("%s", problem)
