"""The models' common ground: strict, closed to unknown names, and the limits that the SDK documents."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
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
    """The part of a model's configuration that shows these requests in the API's reference."""
    return ConfigDict(json_schema_extra={"examples": list(bodies)})


class Body(BaseModel):
    """A JSON object. Types are exact: `"1"` is no integer, `1` is no boolean."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class Nothing(Body):
    """An empty body."""


class Query(BaseModel):
    """A query string. Its values are text, so numbers, booleans and dates are read from text."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False, use_attribute_docstrings=True)


class NoQuery(Query):
    """An empty query string."""


@dataclass(frozen=True)
class AtMost:
    """The upper limit of a number, or of how many a list holds: what the setting of this name says when it is asked."""

    setting: str

    @property
    def most(self) -> int:
        """The limit."""
        found: int = getattr(settings(), self.setting)
        return found

    def check(self, value: Any) -> Any:
        """Raise ValueError beyond the limit."""
        if isinstance(value, list) and len(value) > self.most:
            raise ValueError(f"at most {self.most} at once; these are {len(value)}.")
        if isinstance(value, int) and value > self.most:
            raise ValueError(f"must be at most {self.most}.")
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        said = handler(schema)
        return said | {"maxItems" if said.get("type") == "array" else "maximum": self.most}


class Paged(Query):
    """A list's page: `limit` rows from where the cursor `page` points."""

    limit: Annotated[int, Field(ge=1), AtMost("max_page_rows")] = 20
    page: str | None = Field(None, max_length=1000)


EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
"""No row is older or newer. Between these two, a time can be moved by months and to any offset."""


def _check_format(value: Any) -> Any:
    # pydantic would also read a number, as seconds since 1970.
    if isinstance(value, str) and not _DATE.match(value):
        raise ValueError("must be an RFC 3339 time with an offset, such as 2026-01-31T12:00:00Z.")
    return value


def _within(value: datetime) -> datetime:
    """The time, or the nearest one that can be calculated with. As a bound of a list, either leaves out the same rows."""
    return min(max(value, EARLIEST), LATEST)


Moment = Annotated[AwareDatetime, BeforeValidator(_check_format), AfterValidator(_within)]


class Created(Paged):
    """A list's page, within a time of creation."""

    created_gt: Moment | None = Field(None, alias="created_at[gt]")
    created_gte: Moment | None = Field(None, alias="created_at[gte]")
    created_lt: Moment | None = Field(None, alias="created_at[lt]")
    created_lte: Moment | None = Field(None, alias="created_at[lte]")

    @property
    def between(self) -> list[tuple[str, datetime]]:
        """The bounds that were given, such as `("gt", ...)`."""
        named = (("gt", self.created_gt), ("gte", self.created_gte), ("lt", self.created_lt), ("lte", self.created_lte))
        return [(op, at) for op, at in named if at is not None]


def _empty(value: Any) -> Any:
    if value not in (None, [], {}):
        raise ValueError("is not supported by this server; leave it out.")
    return value


_NOTHING: dict[str, Any] = {"description": "Not supported by this server: leave it out, or empty.", "enum": [None, [], {}]}
Unsupported = Annotated[Any, AfterValidator(_empty), WithJsonSchema(_NOTHING)]
"""A field that clients may send as long as it is empty."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Description = Annotated[str, StringConstraints(max_length=2048)]
System = Annotated[str, StringConstraints(max_length=100_000)]
Message = Annotated[str, StringConstraints(max_length=10_000)]
Id = Annotated[str, StringConstraints(min_length=1, max_length=128)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$"), Field(examples=["5f" * 32])]
PersonName = Annotated[
    str, StringConstraints(pattern=r"^user:user_[0-9A-Za-z]{1,100}$"), Field(examples=["user:user_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
]
GroupName = Annotated[
    str, StringConstraints(pattern=r"^group:grp_[0-9A-Za-z]{1,100}$"), Field(examples=["group:grp_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])
]
YEAR = 366 * 86_400
"""Seconds: no time that a client gives may be longer."""

_Key = Annotated[str, StringConstraints(min_length=1, max_length=64)]
_Value = Annotated[str, StringConstraints(max_length=512)]
Metadata = Annotated[dict[_Key, _Value], Field(max_length=METADATA_PAIRS)]
MetadataPatch = Annotated[dict[_Key, _Value | None], Field(max_length=2 * METADATA_PAIRS)]


def not_null(value: Any) -> Any:
    """For fields of an update that can be left out but not be cleared."""
    if value is None:
        raise ValueError("cannot be cleared; leave it out to keep it.")
    return value
