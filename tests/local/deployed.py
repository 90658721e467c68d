"""What `deploy/` starts in production: the image, Compose, the chart and the units, each read by its own rules."""

import re
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from api.cli.environment import environment
from deploy.procfile import ROOT

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm"
FULL = {
    "bubblewrap": {"enabled": True},
    "roles": {"enabled": True},
    "ingress": {"enabled": True, "host": "assent.example"},
    "scaling": {"enabled": True},
    "networkPolicy": {"enabled": True, "flower": [{"podSelector": {}}], "metrics": [{"namespaceSelector": {}}]},
    "config": {"ASSENT_METRICS_ADDRESS": "0.0.0.0:9464"},
    "files": {"issuers.json": '{"issuers": []}\n'},
}
"""Values that switch everything on."""


def package(name: str) -> Any:
    """A package of the development environment that exists on Linux x86-64 alone."""
    return pytest.importorskip(name) if name in ("helm_python", "compose_spec") else import_module(name)


def image_environment() -> dict[str, str]:
    """The variables of the image."""
    text = (DEPLOY / "Dockerfile").read_text().rpartition("FROM ")[2]
    block = re.search(r"^ENV ((?:.*\\\n)*.*)$", text, re.MULTILINE)
    assert block
    return dict(word.split("=", 1) for word in block[1].replace("\\\n", " ").split())


def compose(variables: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The services of Compose with these variables in `.env`, by default with any text for each.

    A container has no variable that its service names without a value and `.env` does not have, not even that of its image.
    """
    text = _VARIABLE.sub(lambda match: _value(match, variables), (DEPLOY / "compose.yaml").read_text())
    services: dict[str, Any] = yaml.safe_load(text)["services"]
    for service in services.values():
        values = {name: _line(name, value, variables) for name, value in service.get("environment", {}).items()}
        service["environment"] = {name: value for name, value in values.items() if value is not None}
    return services


def _line(name: str, value: str | None, variables: Mapping[str, str] | None) -> str | None:
    if value is not None:
        return value
    return "any" if variables is None else variables.get(name)


_VARIABLE = re.compile(r"\$\{(\w+)(?::([-?])([^}]*))?\}")


def _value(match: re.Match[str], variables: Mapping[str, str] | None) -> str:
    name, operator, text = match.groups()
    value = (variables or {}).get(name) or (text if operator == "-" else "")
    assert value or operator == "-" or variables is None, f"{name} is not set"
    return value or "any"


def rendered(values: dict[str, Any]) -> list[dict[str, Any]]:
    """The objects that the chart makes of these values."""
    with package("helm_python").Chart.load(str(CHART)) as chart:
        files = chart.render(values, name="assent", namespace="production")
    return [document for text in files.values() for document in yaml.safe_load_all(text) if document]


def pods(objects: list[dict[str, Any]], kind: str = "Deployment") -> dict[str, dict[str, Any]]:
    """The pod of each Deployment, or Job, by its component."""
    return {
        item["metadata"]["name"].removeprefix("assent-"): item["spec"]["template"]["spec"]
        for item in objects
        if item["kind"] == kind
    }


def new_variables() -> dict[str, str]:
    """The variables of a new installation."""
    done = CliRunner().invoke(environment, ["new"])
    assert done.exit_code == 0, done.output
    return dict(line.split("=", 1) for line in done.output.splitlines())
