"""What takes long to import is imported when it is used, so that commands and processes start quickly.

The command line leaves out what only servers need. Workers leave out the SDKs of providers, which `turns` loads by itself, and of
MCP servers.
"""

import json
import subprocess
import sys

PROGRAM = """
import json, sys
from importlib import import_module

def loaded():
    return [name for name in sys.modules if "." not in name]

from api.cli.main import ELSEWHERE
for name in ELSEWHERE.values():
    import_module(name)
commands = loaded()
from workers.celery import app
app.loader.import_default_modules()
print(json.dumps([commands, loaded()]))
"""
SDKS = {"anthropic", "openai", "mcp"}
SERVERS = {"celery", "flask", "gevent", "psycopg", "sqlalchemy"}


def test_no_command_and_no_worker_imports_what_it_may_not_need() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=100, check=True)
    commands, worker = map(set, json.loads(done.stdout))
    assert "click" in commands
    assert commands & (SDKS | SERVERS) == set()
    assert "celery" in worker
    assert worker & SDKS == set()
