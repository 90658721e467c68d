"""The fields of KEDA's objects that the chart uses, as JSON schemas by its documentation. Others are refused."""

from typing import Any

TEXT = {"type": "string", "minLength": 1}
NUMBER = {"type": "integer", "minimum": 1}


def fields(**properties: Any) -> dict[str, Any]:
    """The schema of an object with exactly these fields."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def items(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a list."""
    return {"type": "array", "items": schema, "minItems": 1}


_BEHAVIORS = {"enum": ["static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"]}
KEDA = {
    "TriggerAuthentication": fields(secretTargetRef=items(fields(parameter={"const": "connection"}, name=TEXT, key=TEXT))),
    "ScaledObject": fields(
        scaleTargetRef=fields(name=TEXT),
        pollingInterval=NUMBER,
        minReplicaCount=NUMBER,
        maxReplicaCount=NUMBER,
        fallback=fields(failureThreshold=NUMBER, replicas=NUMBER, behavior=_BEHAVIORS),
        triggers=items(
            fields(
                type={"const": "postgresql"},
                metricType={"enum": ["AverageValue", "Value"]},
                metadata=fields(query=TEXT, targetQueryValue=TEXT | {"pattern": "^[0-9.]+$"}),
                authenticationRef=fields(name=TEXT),
            )
        ),
    ),
}
"""The schema of `spec`, by kind."""
