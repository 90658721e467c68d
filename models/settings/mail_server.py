"""A mail server's URL, and the sender of mail."""

from dataclasses import dataclass, field
from email.headerregistry import Address
from email.utils import parseaddr
from urllib.parse import unquote, urlsplit

_PORTS = {"smtp": 587, "smtps": 465}


@dataclass(frozen=True)
class MailServer:
    """Where mail is handed over."""

    host: str
    port: int
    security: str
    """`tls` from the start, `starttls`, or `none`."""
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, url: str) -> "MailServer":
        """Parse `smtp://user:password@host:587`, `smtps://...` or `smtp://host:25?starttls=no`. Raises ValueError."""
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("must be a URL such as smtp://user:password@mail.example.com:587 or smtps://...")
        if parts.path.strip("/") or parts.fragment or parts.query not in {"", "starttls=no"}:
            raise ValueError("may have only the query ?starttls=no after the host and the port; encode / ? # in a password")
        security = "tls" if parts.scheme == "smtps" else "none" if parts.query else "starttls"
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if security == "none" and password:
            raise ValueError("has a password, which ?starttls=no would send in clear text: leave one of them out")
        return cls(parts.hostname, parts.port or _PORTS[parts.scheme], security, user, password)


def sender(text: str) -> Address:
    """Return the address of `Name <name@example.com>`. Raises ValueError."""
    name, address = parseaddr(text) if text.isprintable() else ("", "")
    user, at, domain = address.rpartition("@")
    if not (user and at and domain) or " " in address:
        raise ValueError("must be an address such as `Assent <assent@example.com>`")
    return Address(name, user, domain)
