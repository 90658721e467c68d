"""Networks in CIDR notation, and which addresses are in them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

MOST = 50
"""Networks in one list."""


def check_networks(cidrs: Sequence[str] | None) -> list[str] | None:
    """Return the networks in canonical spelling. None stands for every address and stays None.

    Raises ValueError with the field, such as `allowed_cidrs.1: ...`.
    """
    if cidrs is None:
        return None
    if not 1 <= len(cidrs) <= MOST:
        raise ValueError(f"allowed_cidrs: must name 1 to {MOST} networks; leave it out to allow every address.")
    return [_network(index, text) for index, text in enumerate(cidrs)]


def contains(cidrs: Iterable[str], address: str | None) -> bool:
    """True if the address is in one of the networks. An unreadable address is in none."""
    try:
        ip = _plain(address or "")
    except ValueError:
        return False
    return any(ip in network for network in map(ip_network, cidrs) if network.version == ip.version)


def covers(cidrs: Iterable[str], cidr: str) -> bool:
    """True if one of the networks contains the whole network `cidr`."""
    inner = ip_network(cidr)
    return any(inner.subnet_of(outer) for outer in map(ip_network, cidrs) if outer.version == inner.version)  # type: ignore[arg-type]


def _network(index: int, text: str) -> str:
    try:
        return str(ip_network(text.strip()))
    except ValueError as error:
        message = f"{text[:80]!r} is not a network ({error}): write 203.0.113.0/24, 2001:db8::/32 or one address."
        raise ValueError(f"allowed_cidrs.{index}: {message}") from None


def _plain(address: str) -> IPv4Address | IPv6Address:
    """Parse an address. An IPv4 address that an IPv6 socket reports becomes the IPv4 address."""
    ip = ip_address(address)
    return (ip.ipv4_mapped or ip) if isinstance(ip, IPv6Address) else ip


@dataclass(frozen=True)
class PrivateHosts:
    """The operator's list of private hosts that may be reached, also without TLS."""

    names: frozenset[str] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def of(cls, text: str) -> "PrivateHosts":
        """Read host names, addresses and CIDRs, separated by spaces or commas. Raises ValueError for any other text."""
        names, networks = set[str](), list[IPv4Network | IPv6Network]()
        for part in text.replace(",", " ").split():
            try:
                networks.append(ip_network(part))
            except ValueError:
                if not _HOST.fullmatch(part.lower()):
                    raise ValueError(f"{part[:80]!r} is neither a host name nor a network such as 10.0.0.0/8.") from None
                names.add(part.lower())
        return cls(frozenset(names), tuple(networks))

    def have(self, host: str, address: str = "") -> bool:
        """True if the list names the host, or the network of the host's address. A host that is an address needs no other."""
        if host.lower().rstrip(".") in self.names:
            return True
        try:
            ip = ip_address(address or host.strip("[]"))
        except ValueError:
            return False
        return any(ip in network for network in self.networks)


_HOST = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
