"""Checks the URLs of outside servers in requests."""

import re
from ipaddress import IPv6Address
from urllib.parse import urlsplit

from models.settings import settings

_URL = re.compile(r"(https?)://[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%#-]+")
_HOST = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?\.?")


def outside_url(url: str) -> str:
    """Return the URL. Raises ValueError if the URL is ambiguous, contains a secret, or uses http:// for a public host."""
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError("must be https://HOST/PATH in ASCII, with all other characters percent-encoded.")
    if "#" in url:
        raise ValueError("must have no fragment (#...), which is never sent to a server.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        numbered = "[" in parts.netloc and IPv6Address(host)
    except ValueError as error:
        raise ValueError(f"is not a URL: {error}.") from None
    if "@" in parts.netloc:
        raise ValueError("must have no user and no password: everybody who sees the agent would see them.")
    if not (numbered or _HOST.fullmatch(host)) or "%" in host or port == 0:
        raise ValueError(f"names no valid host: {parts.netloc[:80]!r}.")
    if match[1] == "http" and not settings().private_hosts.have(host):
        raise ValueError("must be https://: anybody on the network could read and change http:// requests.")
    return url
