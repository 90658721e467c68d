"""`/metrics` is for operators: a key with its scope reads it, and no other key, however strong."""

import httpx2
from doors.served import Caller, bad, key
from prometheus_client.parser import text_string_to_metric_families
from rows.stage import Stage

from models.operate.metrics.families import FAMILIES
from models.workspace.api_key import SCOPES


def test_prometheus_reads_every_metric_that_is_listed(api: str, stage: Stage) -> None:
    with Caller(api, key(stage, "metrics")) as operator:
        response = operator.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    metrics = {metric.name: metric.type for metric in text_string_to_metric_families(response.text)}
    assert metrics == {name.removesuffix("_total"): family.kind for name, family in FAMILIES.items()}


def test_nobody_reads_them_without_a_key_of_their_scope(api: str, stage: Stage) -> None:
    with Caller(api, key(stage, *(set(SCOPES) - {"metrics"}))) as other:
        bad(other.get("/metrics"), 403, "metrics")
    assert httpx2.get(f"{api}/metrics").status_code == 401


def test_an_admin_s_key_makes_no_key_that_reads_them(api: str, stage: Stage) -> None:
    with Caller(api, key(stage, "admin")) as admin:
        bad(admin.post("/v1/organizations/api_keys", json={"name": "more", "scopes": ["metrics"]}), 403, "metrics")
