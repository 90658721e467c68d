"""Requests to a model provider, and what the stand-in received."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from workers.providers import ModelError, ModelRequest, Provider

BASH: dict[str, Any] = {"name": "bash", "description": "Runs a command.", "input_schema": {"type": "object"}}
RequestOf = Callable[..., ModelRequest]
UseModelAt = Callable[..., Provider]
Answering = Callable[..., str]


def ignore(index: int, text: str) -> None:
    """An `on_text` that does nothing."""


def failure(provider: Provider, request: ModelRequest) -> ModelError:
    """Assert that a request fails. Returns the error."""
    with pytest.raises(ModelError) as caught:
        provider.ask(request, ignore)
    return caught.value


def sent(http: httpx2.Client) -> dict[str, Any]:
    """Return the body of the last request to the stand-in."""
    body: dict[str, Any] = http.get("/standin/requests", params={"last": 1}).json()["data"][0]
    return body
