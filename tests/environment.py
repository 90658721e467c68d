"""The tests' environment variables. HTTP clients in tests use no proxy and load no public certificates.

Loading more than a hundred public certificates takes 50 ms per client: as long as most tests. Package installers need both.
"""

import os

_KEPT = "ASSENT_TEST_KEPT_"
_NAMES = ("SSL_CERT_FILE", "SSL_CERT_DIR", *(f"{scheme}_proxy" for scheme in ("http", "https", "all", "no")))


def isolate() -> None:
    """Change the environment of this process and of its child processes. Idempotent."""
    if os.environ.get("SSL_CERT_DIR") == os.devnull:
        return
    for name in _changed():
        os.environ[_KEPT + name] = os.environ.pop(name)
    os.environ["SSL_CERT_DIR"] = os.devnull


def of_installers() -> dict[str, str]:
    """Return the original environment, for a program that installs packages."""
    kept = {name.removeprefix(_KEPT): value for name, value in os.environ.items() if name.startswith(_KEPT)}
    return {name: value for name, value in os.environ.items() if name not in _changed()} | kept


def _changed() -> list[str]:
    return [name for name in os.environ if name in _NAMES or name.lower() in _NAMES]
