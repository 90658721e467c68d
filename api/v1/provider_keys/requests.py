"""Requests about keys of model providers."""

from typing import Annotated

from pydantic import Field, StringConstraints

from api.door.requests import Body, examples
from api.v1.model import Provider


class ProviderKeyCreate(Body):
    """A provider's key. It replaces the workspace's former key of the same provider."""

    model_config = examples({"provider": "anthropic", "key": "sk-ant-..."})

    provider: Annotated[Provider, Field(examples=["anthropic"])]
    """The name of a provider of this server."""
    key: Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[!-~]+$")]
    """The key, in printable ASCII without spaces. No response shows the key."""
