"""No HTTP client in the tests trusts a public server, unless it installs packages.

Each client would otherwise read more than a hundred certificates, which takes 50 ms: as much as most tests.
"""

import os

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_KEPT = "ASSENT_TEST_KEPT_"


def trust_nobody() -> None:
    """Change the environment of this process, and of those that it starts. Idempotent."""
    if os.environ.get("SSL_CERT_DIR") == os.devnull:
        return
    for name in VARIABLES:
        if name in os.environ:
            os.environ[_KEPT + name] = os.environ.pop(name)
    os.environ["SSL_CERT_DIR"] = os.devnull


def installer_environment() -> dict[str, str]:
    """Return the environment for a program that installs packages: it trusts the servers that it trusts outside of the tests."""
    kept = {name: os.environ[_KEPT + name] for name in VARIABLES if _KEPT + name in os.environ}
    return {name: value for name, value in os.environ.items() if name not in VARIABLES} | kept
