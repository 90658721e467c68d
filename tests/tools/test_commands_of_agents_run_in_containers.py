"""bubblewrap works in a container with user namespaces and the whole of /proc. Elsewhere the refusal says what to do.

A container is played by a user namespace, in which the tests' user is nobody that the machine knows.
"""

import shutil
import subprocess
import sys

import pytest

from deploy.procfile import ROOT

QUESTION = """
import os
os.environ["ASSENT_SHELL"] = "bubblewrap"
from workers.tools.sandbox.bubblewrap import shell_problem
print(os.getuid(), shell_problem())
"""
CONTAINER = ["bwrap", "--unshare-user", "--uid", "12345", "--gid", "0", "--cap-drop", "ALL", "--bind", "/", "/", "--dev", "/dev"]
WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]


def question(*container: str) -> str:
    """The user id and the problem of the shell tool in a container. Skips where this machine allows no such container."""
    if not shutil.which("bwrap") or subprocess.run([*container, "true"], cwd=ROOT, check=False, capture_output=True).returncode:
        pytest.skip("needs bubblewrap and user namespaces")
    done = subprocess.run([*container, sys.executable, "-c", QUESTION], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def test_an_unknown_user_of_a_container_without_rights_has_a_sandbox() -> None:
    assert question(*CONTAINER) == "12345 None\n"


@pytest.mark.parametrize(
    "closed",
    [
        "echo 0 > /proc/sys/user/max_user_namespaces",
        "mount -t tmpfs none /proc/fs",
    ],
    ids=["without user namespaces", "with a part of /proc covered"],
)
def test_where_the_container_forbids_it_the_refusal_says_what_to_allow(closed: str) -> None:
    namespaces = ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"]
    answer = question(*namespaces, "sh", "-c", f'{closed} && exec "$@"', "sh", *WITHOUT_RIGHTS)
    assert "bubblewrap (bwrap) is missing or does not work here" in answer
    assert (
        "allow user namespaces; in a container, allow mounts and the whole of /proc as well (docs/deployment.md says how)" in answer
    )
