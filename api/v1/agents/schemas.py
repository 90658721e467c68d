"""JSON Schemas of client tools: Draft 2020-12, valid and cheap to validate inputs with."""

from typing import Annotated, Any

from pydantic import AfterValidator

from models.pure.json.tool_schema import DIALECT, schema_fault


def _input_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that is safe to validate inputs with. Raises ValueError with the fault and the remedy."""
    if schema.get("type") != "object":
        raise ValueError('must have "type": "object".')
    dialect = schema.get("$schema", DIALECT)
    if not isinstance(dialect, str) or dialect.removesuffix("#") != DIALECT:
        raise ValueError(f"names a dialect in $schema that is not supported; leave $schema out for {DIALECT}.")
    if fault := schema_fault(schema):
        raise ValueError(fault)
    return schema


InputSchema = Annotated[dict[str, Any], AfterValidator(_input_schema)]
