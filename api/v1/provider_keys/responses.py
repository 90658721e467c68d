"""Responses about keys of model providers. None shows a key."""

from typing import Literal

from pydantic import Field

from api.door.responses import ProviderKeyId, ResponseModel, Time


class ProviderKey(ResponseModel):
    """The workspace has a key of its own for this provider."""

    id: ProviderKeyId
    type: Literal["provider_key"]
    provider: str = Field(examples=["anthropic"])
    hint: str = Field(examples=["wXyZ"])
    """The key's last four characters; empty for a short key."""
    created_at: Time
    created_by: str = Field(examples=["api_key:key_01K9ZQ3T5VJ8W2X4Y6A7B8C9D0"])


class ProviderKeyDeleted(ResponseModel):
    """The key is deleted. Requests to the provider use the operator's key again, if the operator has one."""

    id: ProviderKeyId
    type: Literal["provider_key_deleted"]
