"""Where a request comes from: its client's address, and whether its client spoke TLS.

Behind proxies both are in headers, which anybody can send. Only what `ASSENT_TRUSTED_PROXIES` wrote is believed: `X-Forwarded-For`
is read from the right, and the first address that is no trusted proxy's is the client's. What stands left of it is the client's
own word, and is ignored.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address

from flask import Flask, Response, request

from models.settings import settings

Address = IPv4Address | IPv6Address

HSTS = "max-age=31536000"
_ALWAYS = {"x-content-type-options": "nosniff", "referrer-policy": "no-referrer", "x-frame-options": "DENY"}


def address() -> str | None:
    """The address of the request's client. None where the server does not say, as over a Unix socket without a trusted proxy."""
    return _hops()[0]


def spoke_tls() -> bool:
    """True if the client's connection was TLS, to this server or to the trusted proxy that is nearest to the client."""
    if request.scheme == "https":
        return True
    trusted = _hops()[1]
    schemes = [scheme.strip().lower() for scheme in _joined("x-forwarded-proto")]
    return bool(trusted and schemes) and schemes[-min(trusted, len(schemes))] == "https"


def by_trusted_proxy() -> bool:
    """True if the request's last hop is a proxy of ASSENT_TRUSTED_PROXIES."""
    return _hops()[1] > 0


def install(app: Flask) -> None:
    """Have every response tell browsers what not to do, and where TLS was spoken, never to come without."""

    @app.after_request
    def say(response: Response) -> Response:
        for name, value in _ALWAYS.items():
            response.headers.setdefault(name, value)
        if spoke_tls():
            response.headers["strict-transport-security"] = HSTS
        return response


def _hops() -> tuple[str | None, int]:
    """The client's address, and how many trusted proxies the request came through."""
    last, trusted = request.remote_addr or None, 0
    for hop in [last, *reversed(_joined("x-forwarded-for"))]:
        found = read_address(hop or "")
        if found is None:
            return last, trusted  # what a trusted proxy did not understand itself is nobody's address
        last = str(found)
        if not _is_trusted(found):
            return last, trusted
        trusted += 1
    return last, trusted


def _joined(header: str) -> list[str]:
    """The header's values in their order; several headers of one name are one list."""
    return [value for line in request.headers.getlist(header) for value in line.split(",") if value.strip()]


def read_address(text: str) -> Address | None:
    """The address in `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]` or `[::1]:80`; an IPv4 address in IPv6 is an IPv4 address."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text)
    except ValueError:
        return None
    return (found.ipv4_mapped if isinstance(found, IPv6Address) else None) or found


def _is_trusted(hop: Address) -> bool:
    return any(hop in network for network in settings().proxy_networks)
