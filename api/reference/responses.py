"""Responses about the server itself: its version and links, and its OpenAPI document."""

from typing import Any, Literal

from pydantic import Field

from api.door.responses import ResponseModel


class Service(ResponseModel):
    """The server's name and version, with links. Each link is a path on this server."""

    name: Literal["assent"]
    version: str = Field(examples=["0.2.0"])
    docs: Literal["/docs"]
    openapi: Literal["/openapi.json"]
    healthz: Literal["/healthz"]


class OpenApi(ResponseModel):
    """An OpenAPI 3.1 document."""

    openapi: Literal["3.1.0"]
    info: dict[str, Any] = Field(examples=[{"title": "Assent", "version": "0.2.0"}])
    servers: list[dict[str, str]] = Field(examples=[[{"url": "/"}]])
    tags: list[dict[str, str]] = Field(examples=[[{"name": "agents"}]])
    paths: dict[str, Any] = Field(examples=[{"/healthz": {"get": {"summary": "Report that the process is alive."}}}])
    components: dict[str, Any]
