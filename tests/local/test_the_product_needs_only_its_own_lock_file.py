"""A process of ours imports only what `requirements.lock` names: a release installs nothing else.

During development the packages that only tests need are in the same environment. Libraries import some packages if they are there:
such a package can make each of our processes slower. Other code works during development and fails in a release.
"""

import json
import re

import warm
from documents import ROOT

OPTIONAL = {"pyyaml", "rfc3339-validator", "rich", "setuptools"}
"""Libraries import these packages if they are there, and need little time for it."""
PROGRAM = """
import json, sys
from importlib.metadata import packages_distributions
import api.v1.agents.routes, api.v1.approvals.routes, api.v1.audit.routes, api.v1.events.routes
import api.v1.health.routes, api.v1.sessions.routes
import api.cli.client, api.reference.routes, api.serving, api.signing_in.openid
import deploy.local, deploy.migrate, deploy.standin.server
import workers.announcing, workers.providers.anthropic, workers.tool, workers.tools.mcp.listing, workers.turn
import workers.sweeps.archiving, workers.sweeps.resuming, workers.sweeps.sealing
names = {name.partition(".")[0] for name in sys.modules}
distributions = packages_distributions()
print(json.dumps(sorted({distribution for name in names for distribution in distributions.get(name, [])})))
"""


def normal(name: str) -> str:
    """A distribution's name as lock files write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_each_package_that_a_process_imports_is_in_the_lock_file() -> None:
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    done = warm.run("-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    imported = {normal(name) for name in json.loads(done.stdout)}
    assert {"flask", "celery", "anthropic", "mcp", "jsonschema"} <= imported
    assert imported - locked - OPTIONAL - {"assent-server"} == set()
