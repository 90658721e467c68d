"""Base classes and common types of the requests: strict, without unknown fields, with the limits that the SDK documents."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function

from models.settings import settings
from models.workspace.agent import METADATA_PAIRS

_DATE = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d")


def examples(*bodies: dict[str, Any]) -> ConfigDict:
    """Return a model's configuration that shows these examples in the API's reference."""
    return ConfigDict(json_schema_extra={"examples": list(bodies)})


def without_defaults(schema: dict[str, Any]) -> None:
    """Remove the defaults from the schema of a model that reads which fields were sent: a client must not send the others."""
    for field in schema["properties"].values():
        field.pop("default", None)


class Body(BaseModel):
    """A JSON object. Types are strict: `"1"` is not an integer, `1` is not a boolean."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    def sent(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return those of the values whose fields the request sets."""
        return {field: value for field, value in values.items() if field in self.model_fields_set}


class Nothing(Body):
    """An empty body."""


class Erase(Body):
    """Why a person or a session is erased."""

    model_config = examples({"reason": "Left the company, and asked for it on 2 November."})

    reason: Annotated[str, StringConstraints(min_length=1, max_length=1000, strip_whitespace=True)]
    """The audit keeps it, so name nobody in it."""


class QueryString(BaseModel):
    """A query string. Its values are text, so numbers, booleans and dates are read from text."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False, defer_build=True)


class NoQuery(QueryString):
    """An empty query string."""


@dataclass(frozen=True)
class AtMost:
    """The upper limit of a number, or of a list's length: the present value of the setting with this name."""

    setting: str

    @property
    def most(self) -> int:
        """The limit."""
        limit: int = getattr(settings(), self.setting)
        return limit

    def check(self, value: Any) -> Any:
        """Return the value. Raises ValueError beyond the limit."""
        if isinstance(value, list) and len(value) > self.most:
            raise ValueError(f"at most {self.most} at once; these are {len(value)}.")
        if isinstance(value, int) and value > self.most:
            raise ValueError(f"must be at most {self.most}.")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = handler(schema)
        return json_schema | {"maxItems" if json_schema.get("type") == "array" else "maximum": self.most}


class Paged(QueryString):
    """A page of a list: `limit` rows from the cursor `page`."""

    limit: Annotated[int, Field(ge=1), AtMost("max_page_rows")] = 20
    page: str | None = Field(None, max_length=1000)


Id = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Version = Annotated[int, Field(ge=1, le=2**31 - 1)]
"""A version of an agent."""


class IdPaged(QueryString):
    """A page in the form of the SDK's `SyncPage`: `limit` rows after `after_id`, or before `before_id`."""

    limit: Annotated[int, Field(ge=1, le=1000)] = 20
    after_id: Id | None = None
    before_id: Id | None = None


EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""Bounds of the times of all rows. Python can move a time within these bounds by months and to any offset."""


def _check_format(value: Any) -> Any:
    # Without this check pydantic would read a number, also one in a text, as seconds since 1970.
    if not isinstance(value, datetime) and not (isinstance(value, str) and _DATE.match(value)):
        raise ValueError("must be an RFC 3339 time with an offset, such as 2026-01-31T12:00:00Z.")
    return value


def _within(value: datetime) -> datetime:
    """Return the time within the bounds. No row lies outside, so a list's rows stay the same."""
    return min(max(value, EARLIEST), LATEST)


Moment = Annotated[AwareDatetime, BeforeValidator(_check_format), AfterValidator(_within)]


class Created(Paged):
    """A page of a list, limited by time of creation."""

    created_gt: Moment | None = Field(None, alias="created_at[gt]")
    created_gte: Moment | None = Field(None, alias="created_at[gte]")
    created_lt: Moment | None = Field(None, alias="created_at[lt]")
    created_lte: Moment | None = Field(None, alias="created_at[lte]")

    @property
    def between(self) -> list[tuple[str, datetime]]:
        """The bounds in the query, such as `("gt", ...)`."""
        bounds = (("gt", self.created_gt), ("gte", self.created_gte), ("lt", self.created_lt), ("lte", self.created_lte))
        return [(op, at) for op, at in bounds if at is not None]


def _empty(value: Any) -> Any:
    if value not in (None, [], {}):
        raise ValueError("is not supported by this server; leave it out.")
    return value


def one_of(*values: Any) -> dict[str, Any]:
    """Return the schema of a field with one of these values. Generators read no `enum` of several types."""
    options = [_schema_of(value) for value in values]
    return options[0] if len(options) == 1 else {"anyOf": options}


def _schema_of(value: Any) -> dict[str, Any]:
    match value:
        case None:
            return {"type": "null"}
        case list():
            return {"type": "array", "items": one_of(*value) if value else {}, "minItems": len(value), "maxItems": len(value)}
        case dict():
            fields = {name: _schema_of(each) for name, each in value.items()}
            return {"type": "object", "properties": fields, "required": list(fields), "maxProperties": len(fields)}
        case bool():
            return {"type": "boolean", "const": value}
        case int():
            return {"type": "integer", "const": value}
    return {"type": "string", "const": value}


_NOTHING = {"description": "Not supported by this server: leave it out, or send it empty.", **one_of(None, [], {})}
Unsupported = Annotated[Any, AfterValidator(_empty), WithJsonSchema(_NOTHING)]
"""A field that clients may only send empty."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Description = Annotated[str, StringConstraints(max_length=2048)]
System = Annotated[str, StringConstraints(max_length=100_000)]
Message = Annotated[str, StringConstraints(max_length=10_000)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$"), Field(examples=["5f" * 32])]
PersonName = Annotated[
    str, StringConstraints(pattern=r"^user:user_[0-9A-Za-z]{1,100}$"), Field(examples=["user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
]
GroupName = Annotated[
    str, StringConstraints(pattern=r"^group:grp_[0-9A-Za-z]{1,100}$"), Field(examples=["group:grp_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
]
YEAR = 366 * 86_400
"""The longest duration in a request, in seconds."""

MetadataKey = Annotated[str, StringConstraints(min_length=1, max_length=64)]
MetadataValue = Annotated[str, StringConstraints(max_length=512)]
Metadata = Annotated[dict[MetadataKey, MetadataValue], Field(max_length=METADATA_PAIRS)]
MetadataPatch = Annotated[dict[MetadataKey, MetadataValue | None], Field(max_length=2 * METADATA_PAIRS)]


def twice(values: Iterable[str]) -> str | None:
    """Return a value that appears more than once, or None."""
    return next((value for value, following in pairwise(sorted(values)) if value == following), None)


def not_null(value: Any) -> Any:
    """Raise ValueError for null, in a field of an update that cannot be cleared."""
    if value is None:
        raise ValueError("cannot be cleared; leave it out to keep it.")
    return value
