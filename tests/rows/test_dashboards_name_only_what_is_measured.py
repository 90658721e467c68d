"""Every metric in the dashboard and in the alerts exists, every metric is documented, and each alert says what to do."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.operate.metrics.durations import DURATIONS
from models.operate.metrics.families import FAMILIES, Family

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "metrics"
PAGE = (ROOT / "docs" / "metrics.md").read_text("utf-8")
ALL: dict[str, Family] = FAMILIES | {name: family for name, (family, _) in DURATIONS.items()}
SAMPLES = {
    f"{name}{suffix}"
    for name, family in ALL.items()
    for suffix in (("_bucket", "_sum", "_count") if family.kind == "histogram" else ("",))
}
_LABELS = re.compile(r"\{[^}]*\}|\b(?:by|without|on)\s*\([^)]*\)")
_NAMES = re.compile(r"\b(?:assent|gen_ai|http)_[a-z_]+")


def metrics_in(expression: str) -> set[str]:
    """The names of samples in an expression of PromQL, without labels."""
    return set(_NAMES.findall(_LABELS.sub("", expression)))


def expressions(value: Any) -> list[str]:
    """All expressions of a dashboard or a file of rules."""
    if isinstance(value, list):
        return [text for each in value for text in expressions(each)]
    if isinstance(value, dict):
        own = [text for key, text in value.items() if key in {"expr", "definition"}]
        return own + [text for each in value.values() for text in expressions(each)]
    return []


DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
RULES = [rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text("utf-8"))["groups"] for rule in group["rules"]]


@pytest.mark.parametrize("expression", [*expressions(DASHBOARD), *expressions(RULES)])
def test_an_expression_names_metrics_that_exist(expression: str) -> None:
    names = metrics_in(expression.replace("label_values(assent_audit_alarm, workspace)", "assent_audit_alarm"))
    assert names
    assert names <= SAMPLES


def test_there_are_nine_alerts_and_the_page_explains_each() -> None:
    assert len(RULES) == 9
    for rule in RULES:
        assert f"| `{rule['alert']}` |" in PAGE
        assert rule["annotations"]["summary"]


def test_the_page_lists_every_metric_with_its_labels() -> None:
    rows = dict(re.findall(r"^\| `([a-z_]+)` \|([^|]*)\|", PAGE, re.MULTILINE))
    assert set(rows) == set(ALL)
    for name, (_family, labels) in DURATIONS.items():
        assert re.findall(r"`([a-z_]+)`", rows[name]) == list(labels)


def test_the_dashboard_leads_to_flower() -> None:
    [link] = DASHBOARD["links"]
    assert (link["title"], link["url"]) == ("Flower", "${flower}")
