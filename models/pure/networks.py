"""Networks in CIDR notation: which addresses are in them."""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from models.errors import Invalid

MOST = 50
"""Networks of one list."""


def check_networks(cidrs: Sequence[str] | None) -> list[str] | None:
    """The networks in their usual spelling; None for none, which is every address. Raises Invalid."""
    if cidrs is None:
        return None
    if not 1 <= len(cidrs) <= MOST:
        raise Invalid("allowed_cidrs", f"must name 1 to {MOST} networks; leave it out to allow every address.")
    return [_network(index, text) for index, text in enumerate(cidrs)]


def contains(cidrs: Iterable[str], address: str | None) -> bool:
    """Whether an address is in one of the networks. One that cannot be read is in none."""
    try:
        found = _plain(address or "")
    except ValueError:
        return False
    return any(found in network for network in map(ip_network, cidrs) if network.version == found.version)


def _network(index: int, text: str) -> str:
    try:
        return str(ip_network(text.strip()))
    except ValueError as error:
        message = f"{text[:80]!r} is no network ({error}): write 203.0.113.0/24, 2001:db8::/32 or one address."
        raise Invalid(f"allowed_cidrs.{index}", message) from None


def _plain(address: str) -> IPv4Address | IPv6Address:
    """An IPv4 address that came through an IPv6 socket is the IPv4 address."""
    found = ip_address(address)
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found
