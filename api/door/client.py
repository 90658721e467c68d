"""The address of a request's client, and whether the client used TLS.

Behind proxies both are in headers, which anybody can send. Only headers from `ASSENT_TRUSTED_PROXIES` count. `X-Forwarded-For` is
read from the right: the first address that does not belong to a trusted proxy is the client's. Addresses further left come from
the client itself, and are ignored.
"""

from ipaddress import IPv4Address, IPv6Address, ip_address

from flask import Flask, Response, request

from models.settings import settings

Address = IPv4Address | IPv6Address

HSTS = "max-age=31536000"
_ALWAYS = {
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
}
"""Default headers of every response. Pages have a policy of their own."""


def address() -> str | None:
    """Return the address of the request's client. None if it is unknown, as over a Unix socket without a trusted proxy."""
    return _hops()[0]


def spoke_tls() -> bool:
    """True if the client used TLS, to this server or to the trusted proxy that is nearest to the client."""
    if request.scheme == "https":
        return True
    trusted = _hops()[1]
    schemes = [scheme.strip().lower() for scheme in _one_header("x-forwarded-proto")]
    return bool(trusted and schemes) and schemes[-min(trusted, len(schemes))] == "https"


def by_trusted_proxy() -> bool:
    """True if the request's last hop is a proxy of ASSENT_TRUSTED_PROXIES."""
    return _hops()[1] > 0


def install(app: Flask) -> None:
    """Add security headers to every response. A response over TLS also tells browsers to keep using TLS."""

    @app.after_request
    def add_headers(response: Response) -> Response:
        for name, value in _ALWAYS.items():
            response.headers.setdefault(name, value)
        if spoke_tls():
            response.headers["strict-transport-security"] = HSTS
        return response


def _hops() -> tuple[str | None, int]:
    """Return the client's address, and the number of trusted proxies between the client and this server."""
    last, trusted = request.remote_addr or None, 0
    for hop in [last, *reversed(_one_header("x-forwarded-for"))]:
        hop_address = read_address(hop or "")
        if hop_address is None:
            return last, trusted  # a trusted proxy passed an unreadable value on
        last = str(hop_address)
        if not _is_trusted(hop_address):
            return last, trusted
        trusted += 1
    return last, trusted


def _one_header(header: str) -> list[str]:
    """Return the header's values in their order. Several headers of one name form one list."""
    return [value for line in request.headers.getlist(header) for value in line.split(",") if value.strip()]


def read_address(text: str) -> Address | None:
    """Return the address in `1.2.3.4`, `1.2.3.4:80`, `::1`, `[::1]` or `[::1]:80`; None for any other text.

    An IPv4 address in IPv6 becomes IPv4.
    """
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        ip = ip_address(text)
    except ValueError:
        return None
    return (ip.ipv4_mapped if isinstance(ip, IPv6Address) else None) or ip


def is_trusted(peer: str) -> bool:
    """True if this address is a proxy of ASSENT_TRUSTED_PROXIES."""
    hop = read_address(peer)
    return hop is not None and _is_trusted(hop)


def _is_trusted(hop: Address) -> bool:
    return any(hop in network for network in settings().proxy_networks)
