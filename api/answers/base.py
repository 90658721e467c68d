"""The answers' common ground."""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"}, examples=["2026-01-31T12:00:00.000000Z"])]
Empty = Annotated[list[Any], Field(max_length=0)]
Metadata = dict[str, str]


class Answer(BaseModel):
    """A JSON object that we send."""

    model_config = ConfigDict(strict=True, frozen=True)


class Page(Answer, Generic[T]):
    """Rows of a list, and the cursor of the next page, to be sent back as `page`."""

    data: list[T]
    next_page: str | None


class Text(Answer):
    """Plain text."""

    type: Literal["text"]
    text: str


class ErrorDetail(Answer):
    """What went wrong. A message names the field, and says what would be right."""

    type: Literal[
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "conflict_error",
        "rate_limit_error",
        "api_error",
        "overloaded_error",
    ]
    message: str
    winner: dict[str, Any] = Field({}, description="Of a conflict: what happened first.")
    details: dict[str, Any] = Field({}, description="Of a 412: `error_code`, and the state that the row has.")


class Error(Answer):
    """Every error's one shape."""

    type: Literal["error"]
    error: ErrorDetail
    request_id: str | None
