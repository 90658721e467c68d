"""Base classes and common types of the responses."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any, Generic, Literal, Self, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, PlainSerializer, create_model
from pydantic_core import CoreSchema

from api.door.examples import IDS
from models.pure.times import rfc3339

T = TypeVar("T")


Time = Annotated[datetime, PlainSerializer(rfc3339)]
AgentId = Annotated[str, Field(examples=[IDS["agent_id"]])]
ApiKeyId = Annotated[str, Field(examples=[IDS["api_key_id"]])]
DeliveryId = Annotated[str, Field(examples=[IDS["delivery_id"]])]
EnvironmentId = Annotated[str, Field(examples=[IDS["environment_id"]])]
GroupId = Annotated[str, Field(examples=[IDS["rbac_group_id"]])]
InviteId = Annotated[str, Field(examples=[IDS["invite_id"]])]
LegalHoldId = Annotated[str, Field(examples=[IDS["legal_hold_id"]])]
ProviderKeyId = Annotated[str, Field(examples=[IDS["provider_key_id"]])]
RequestId = Annotated[str, Field(examples=[IDS["request_id"]])]
SessionId = Annotated[str, Field(examples=[IDS["session_id"]])]
SlackUserId = Annotated[str, Field(examples=[IDS["slack_user_id"]])]
SpendLimitId = Annotated[str, Field(examples=[IDS["spend_limit_id"]])]
ThreadId = Annotated[str, Field(examples=[IDS["thread_id"]])]
UserId = Annotated[str, Field(examples=[IDS["user_id"]])]
WebhookId = Annotated[str, Field(examples=[IDS["webhook_id"]])]
WorkId = Annotated[str, Field(examples=[IDS["work_id"]])]
WorkspaceId = Annotated[str, Field(examples=[IDS["workspace_id"]])]
Empty = Annotated[list[Any], Field(max_length=0)]
Metadata = dict[str, str]


@cache
def _required_names(model: type[BaseModel]) -> tuple[str, ...]:
    return tuple(name for name, field in model.model_fields.items() if field.is_required())


@cache
def _constants(model: type[BaseModel]) -> dict[str, Any]:
    """Return the required fields that can have one value only, with this value: `type` and what this server does not support."""
    constants: dict[str, Any] = {}
    for name in _required_names(model):
        field = model.model_fields[name]
        choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
        if len(choices) == 1:
            constants[name] = choices[0]
        elif field.annotation is type(None):
            constants[name] = None
        elif any(getattr(limit, "max_length", None) == 0 for limit in field.metadata):
            constants[name] = []
    return constants


class ResponseModel(BaseModel):
    """A JSON object in a response. A field that is not set is left out."""

    model_config = ConfigDict(strict=True, frozen=True, defer_build=True)

    @classmethod
    def from_row(cls, row: object, **values: Any) -> Self:
        """Return a response with these `values`, and with the row's attribute of the same name for every other required field.

        A field that can have one value only, such as `type`, has that value.
        """
        values = _constants(cls) | values
        attributes = {name: getattr(row, name) for name in _required_names(cls) if name not in values}
        # pydantic's plugin for mypy takes the result for an ResponseModel, not for the subclass.
        return cast("Self", cls.model_construct(**attributes, **values))

    @classmethod
    def stored(cls, **values: Any) -> Self:
        """Return a response with values that are stored as JSON. A field that an older release did not store is left out."""
        return cast("Self", cls.model_construct(**values))


M = TypeVar("M", bound=ResponseModel)
typed_dict_of: dict[type[BaseModel], type] = {}
"""The typed dict whose fields `with_fields_of` gave to a response."""


def with_fields_of(typed_dict: type) -> Callable[[type[M]], type[M]]:
    """Return a decorator that gives a response the fields of a typed dict, which describes the same JSON in events."""

    def wrap(model: type[M]) -> type[M]:
        fields: dict[str, Any] = {name: (hint, ...) for name, hint in get_type_hints(typed_dict, include_extras=True).items()}
        extended = create_model(model.__name__, __base__=model, __doc__=model.__doc__, __module__=model.__module__, **fields)
        typed_dict_of[extended] = typed_dict
        return extended

    return wrap


@dataclass(frozen=True)
class DescribedBy:
    """Annotates JSON that is sent as it is stored, with the type that describes it."""

    description: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(self.description)


class Page(ResponseModel, Generic[T]):
    """Rows of a list. Send `next_page` as `page` to get the next rows."""

    data: list[T]
    next_page: str | None


class Identified(ResponseModel):
    """A response with an id."""

    id: str


H = TypeVar("H", bound=Identified)


class IdPage(ResponseModel, Generic[H]):
    """A page in the form of the SDK's `SyncPage`. Send `last_id` as `after_id` for the next page."""

    data: list[H]
    first_id: str | None
    last_id: str | None
    has_more: bool
    """Whether there are more rows in the requested direction."""

    @classmethod
    def of(cls, data: list[H], *, has_more: bool) -> Self:
        """Return the page of these rows."""
        return cls(data=data, first_id=data[0].id if data else None, last_id=data[-1].id if data else None, has_more=has_more)


class ErrorDetail(ResponseModel):
    """The error. The message names the field, the fault and the remedy."""

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
    message: str = Field(examples=["limit: must be at most 100."])
    winner: dict[str, Any] = Field({}, description="For a 409: the decision or version that came first.")
    details: dict[str, Any] = Field({}, description="For a 412: `error_code`, and the present state of the row.")


class Error(ResponseModel):
    """The body of every error."""

    type: Literal["error"]
    error: ErrorDetail
    request_id: RequestId | None
