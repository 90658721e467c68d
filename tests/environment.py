"""The tests' environment: their HTTP clients use no proxy and trust no public server, unless they install packages.

A client that trusts public servers reads more than a hundred certificates, which takes 50 ms: as much as most tests.
"""

import os

_KEPT = "ASSENT_TEST_KEPT_"
_NAMES = ("SSL_CERT_FILE", "SSL_CERT_DIR", *(f"{scheme}_proxy" for scheme in ("http", "https", "all", "no")))


def isolate() -> None:
    """Change the environment of this process, and of those that it starts. Idempotent."""
    if os.environ.get("SSL_CERT_DIR") == os.devnull:
        return
    for name in _changed():
        os.environ[_KEPT + name] = os.environ.pop(name)
    os.environ["SSL_CERT_DIR"] = os.devnull


def of_installers() -> dict[str, str]:
    """Return the environment for a program that installs packages: as it is outside of the tests."""
    kept = {name.removeprefix(_KEPT): value for name, value in os.environ.items() if name.startswith(_KEPT)}
    return {name: value for name, value in os.environ.items() if name not in _changed()} | kept


def _changed() -> list[str]:
    return [name for name in os.environ if name in _NAMES or name.lower() in _NAMES]
