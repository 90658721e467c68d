"""A database, a Redis or a model that the environment names is used, and nothing is embedded in its place."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from own_database import DatabaseUrls

from deploy.folder import free_port

pytestmark = [pytest.mark.crash, pytest.mark.timeout(240)]


def test_with_all_of_them_given_there_is_no_sample_session(
    clean_database: DatabaseUrls, clean_redis: str, tmp_path: Path, until: Callable[..., None]
) -> None:
    """A real key costs money: nothing is sent to it unasked."""
    given = {
        "DATABASE_URL": clean_database.app,
        "DATABASE_SYSTEM_URL": clean_database.system,
        "REDIS_URL": clean_redis,
        "ANTHROPIC_API_KEY": "sk-ant-real",
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{free_port()}",
    }
    words = [sys.executable, "-m", "api.cli.main", "up", "--port", str(free_port()), "--data-dir", str(tmp_path / "data")]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(words, env=os.environ | given, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    up = tmp_path / "data" / "up.json"
    until(lambda: process.poll() is not None or up.exists(), 120)
    assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
    said = json.loads(up.read_text())
    try:
        assert set(said["processes"]) == {"web", "turns", "tools", "sweeps", "deliver", "beat", "flower"}
        assert (said["database_url"], said["redis_url"]) == (clean_database.app, clean_redis)
        listed = httpx.get(f"{said['url']}/v1/sessions", headers={"x-api-key": said["api_key"]}, trust_env=False)
        assert listed.raise_for_status().json()["data"] == []
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
