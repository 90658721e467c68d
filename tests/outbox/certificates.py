"""Certificates of an authority of a test's own, good and bad ones."""

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

PEM = serialization.Encoding.PEM


class Authority:
    """Signs certificates. Clients trust those if the environment's SSL_CERT_FILE is `path`."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "authority.pem"
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = _name("A test's authority")
        build = self._builder(self.name, self.key, 1).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        self.path.write_bytes(build.sign(self.key, hashes.SHA256()).public_bytes(PEM))

    def context(self, *, of: str = "127.0.0.1", days: int = 1, is_self_signed: bool = False) -> ssl.SSLContext:
        """A server's TLS with a certificate of this address, valid for so many days from now; yesterday's if negative."""
        key = ec.generate_private_key(ec.SECP256R1())
        build = self._builder(_name(of), key, days, issuer=_name(of) if is_self_signed else self.name)
        build = build.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(of))]), critical=False)
        certificate = build.sign(key if is_self_signed else self.key, hashes.SHA256())
        secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        path = self.folder / "server.pem"
        path.write_bytes(secret + certificate.public_bytes(PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        return context

    def _builder(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, days: int, issuer: x509.Name | None = None
    ) -> x509.CertificateBuilder:
        until = datetime.now(UTC) + timedelta(days=days)
        builder = x509.CertificateBuilder(issuer or self.name, name, key.public_key(), x509.random_serial_number())
        return builder.not_valid_before(until - timedelta(days=2)).not_valid_after(until)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
