"""A URL that a client gives reaches the public internet and nothing else."""

import asyncio
import datetime
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from mcp_servers.conftest import Caller, text
from mcp_servers.lying import Liar, Request

from workers.guarded_http import GuardedTransport, UrlRefused, check_url, is_public
from workers.tools.mcp.calling import Unreachable
from workers.tools.mcp.listing import listing
from workers.tools.mcp.servers import Server

PUBLIC = ["8.8.8.8", "1.1.1.1", "2606:4700::1", "64:ff9b::808:808", "::ffff:8.8.8.8", "2002:808:808::1"]
PRIVATE = [
    *["127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "255.255.255.255"],
    *["192.0.0.8", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "192.88.99.1"],
    *["::1", "::", "fe80::1", "fe80::1%lo", "fc00::1", "fec0::1", "ff0e::1", "2001:db8::1", "2001:0:1::1"],
    *["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::127.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1", "64:ff9b:1::1"],
]


def client(url: str) -> Server:
    return Server(url, url)


def why_not(url: str) -> str:
    """Return the error of a listing that fails."""
    with pytest.raises(Unreachable) as caught:
        listing(client(url))
    return caught.value.message


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", PRIVATE)
def test_any_other_address_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "url", ["http://example.com", "ftp://example.com", "https://me:secret@example.com", "https://", "nonsense", "https://\u2028"]
)
def test_a_url_without_https_or_host_or_with_a_password_is_refused(url: str) -> None:
    with pytest.raises(UrlRefused):
        check_url(url)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"])
def test_a_client_s_url_reaches_no_private_address(liar: Liar, host: str) -> None:
    assert "does not resolve to a public address" in why_not(f"https://{host}:{liar.port}/mcp")
    assert liar.heard == []


def test_a_client_s_url_needs_tls(liar: Liar) -> None:
    assert "must begin with https://" in why_not(liar.url)
    assert liar.heard == []


def test_a_call_is_refused_like_a_listing(liar: Liar) -> None:
    result = Caller(client(liar.url.replace("http:", "https:"))).call("act")
    assert result.is_error
    assert "does not resolve to a public address; the call was not sent" in text(result)


def test_one_public_address_does_not_excuse_another(liar: Liar, monkeypatch: pytest.MonkeyPatch) -> None:
    def both(host: str, port: int, *_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("8.8.8.8", "127.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    assert "does not resolve to a public address" in why_not(f"https://two.example:{liar.port}/mcp")


def test_a_connection_is_for_one_host_only() -> None:
    """The pool knows addresses, and another host's certificate would not be checked."""

    async def visit_two() -> None:
        async with httpx2.AsyncClient(transport=GuardedTransport(private=True, max_bytes=1)) as client:
            with pytest.raises(httpx2.ConnectError):
                await client.get("http://127.0.0.1:1")
            await client.get("http://localhost:1")

    with pytest.raises(UrlRefused, match="for another host"):
        asyncio.run(visit_two())


def test_a_redirect_is_not_followed(liar: Liar, set_environment: Callable[..., None]) -> None:
    set_environment(ASSENT_ALLOWED_PRIVATE_HOSTS="127.0.0.1 localhost")
    liar.on_call(lambda request: request.plain(307, location="/elsewhere"))
    result = Caller(client(liar.url)).call("act")
    assert result.is_error
    assert "HTTP 307" in text(result)
    assert len(liar.calls) == 1


def test_no_proxy_and_no_password_come_from_the_environment(
    liar: Liar, set_environment: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password hunter2\n")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    set_environment(ASSENT_ALLOWED_PRIVATE_HOSTS="127.0.0.1 localhost")
    assert [entry["name"] for entry in listing(client(liar.url))] == ["act"]
    assert all("authorization" not in {name.lower() for name in headers} for *_, headers in liar.heard)


def test_a_compressed_response_is_refused(liar: Liar, set_environment: Callable[..., None]) -> None:
    set_environment(ASSENT_ALLOWED_PRIVATE_HOSTS="127.0.0.1 localhost")

    def bomb(request: Request) -> None:
        request.plain(200, b"\x1f\x8b", content_type="application/json", content_encoding="gzip")

    liar.on_greeting(bomb)
    assert "the response is compressed" in why_not(liar.url)
    assert {headers["accept-encoding"] for *_, headers in liar.heard} == {"identity"}


@pytest.fixture
def certificate(tmp_path: Path) -> Callable[[str], ssl.SSLContext]:
    """A server's TLS, with a certificate of its own for the name; the file `cert.pem` has it."""

    def make(name: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = datetime.datetime.now(datetime.UTC)
        built = (
            x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (tmp_path / "cert.pem").write_bytes(built.public_bytes(pem))
        (tmp_path / "both.pem").write_bytes(secret + built.public_bytes(pem))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "both.pem")
        return context

    return make


@pytest.mark.parametrize(("name", "is_good"), [("localhost", True), ("elsewhere.example", False)])
def test_tls_is_for_the_name_though_the_connection_is_to_an_address(
    certificate: Callable[[str], ssl.SSLContext],
    set_environment: Callable[..., None],
    tmp_path: Path,
    name: str,
    is_good: bool,
) -> None:
    with Liar(context=certificate(name)) as liar:
        set_environment(ASSENT_ALLOWED_PRIVATE_HOSTS="127.0.0.1 localhost", SSL_CERT_FILE=tmp_path / "cert.pem")
        url = f"https://localhost:{liar.port}/mcp"
        if is_good:
            assert [entry["name"] for entry in listing(client(url))] == ["act"]
        else:
            assert "the certificate is not valid (Hostname mismatch" in why_not(url)
            assert liar.heard == []


def test_a_second_answer_of_the_name_server_changes_nothing(
    certificate: Callable[[str], ssl.SSLContext],
    set_environment: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """DNS rebinding: the name is public when it is checked, and private from then on."""
    answers = iter(["192.88.98.1"])

    def rebind(_host: str, port: int, *_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers, "127.0.0.1"), port))]

    with Liar(context=certificate("rebinding.example")) as liar:
        set_environment(ASSENT_MCP_CONNECT_SECONDS="0.5", SSL_CERT_FILE=tmp_path / "cert.pem")
        monkeypatch.setattr(socket, "getaddrinfo", rebind)
        why_not(f"https://rebinding.example:{liar.port}/mcp")
        assert liar.heard == []


def test_a_self_signed_certificate_is_refused(
    certificate: Callable[[str], ssl.SSLContext], set_environment: Callable[..., None]
) -> None:
    set_environment(ASSENT_ALLOWED_PRIVATE_HOSTS="127.0.0.1 localhost")
    with Liar(context=certificate("localhost")) as liar:
        result = Caller(client(f"https://localhost:{liar.port}/mcp")).call("act")
    assert "the certificate is not valid (self-signed certificate)" in text(result)


def test_the_operator_s_servers_may_have_private_addresses(liar: Liar) -> None:
    assert [entry["name"] for entry in listing(liar.server)] == ["act"]


def test_the_operator_s_headers_are_sent(liar: Liar) -> None:
    listing(Server("liar", liar.url, {"X-Key": "hunter2"}, ours=True))
    assert {headers["x-key"] for *_, headers in liar.heard} == {"hunter2"}
