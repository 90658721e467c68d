"""Content blocks in requests: of a user's message, and of a result by a tool or by a person in the tool's place."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from api.door.requests import Body

B = TypeVar("B", bound=Sequence[Any])

Text = Annotated[str, StringConstraints(min_length=1)]
Url = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^https?://\S+$")]


class TextBlock(Body):
    """Plain text."""

    type: Literal["text"]
    text: Text = Field(examples=["Please refund order 1042."])


class Base64(Body):
    """Data in the request itself."""

    type: Literal["base64"]
    data: Text
    media_type: Annotated[str, StringConstraints(min_length=3, max_length=100)]


class Link(Body):
    """Data that the model's provider fetches."""

    type: Literal["url"]
    url: Url


class PlainText(Body):
    """A document that is plain text."""

    type: Literal["text"]
    data: Text
    media_type: Literal["text/plain"]


class ImageBlock(Body):
    """An image."""

    type: Literal["image"]
    source: Annotated[Base64 | Link, Field(discriminator="type")]


class DocumentBlock(Body):
    """A document."""

    type: Literal["document"]
    source: Annotated[Base64 | Link | PlainText, Field(discriminator="type")]
    title: str | None = Field(None, max_length=1000)
    context: str | None = None


class Citations(Body):
    """Whether the model may cite a search result."""

    enabled: bool


class SearchResultBlock(Body):
    """A search result."""

    type: Literal["search_result"]
    source: Text
    title: Text
    content: Annotated[list[TextBlock], Field(min_length=1)]
    citations: Citations


MessageBlock = Annotated[TextBlock | ImageBlock | DocumentBlock, Field(discriminator="type")]
Result = Annotated[TextBlock | ImageBlock | DocumentBlock | SearchResultBlock, Field(discriminator="type")]


def not_blank(blocks: B) -> B:
    """Return the blocks. Raises ValueError if a block's text is only white space."""
    if any(isinstance(block, TextBlock) and not block.text.strip() for block in blocks):
        raise ValueError("a text block must hold more than white space: models refuse it.")
    return blocks


def _in_blocks(value: Any) -> Any:
    return [{"type": "text", "text": value}] if isinstance(value, str) else value


Blocks = Annotated[list[Result], Field(min_length=1, max_length=100), AfterValidator(not_blank)]
WrittenResult = Annotated[Blocks, BeforeValidator(_in_blocks, json_schema_input_type=Text | Blocks)]
"""A result that a person writes: a text, or content blocks."""
