"""Mail in text and HTML, one thread per approval, with a link to unsubscribe; a bad mail server harms nobody."""

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from outbox import notices
from outbox.certificates import Authority
from outbox.mailbox import Mailbox, html_of, serving, text_of
from outbox.notified import mail_channel, notifications, notify
from own_database import Clock
from people import member
from rows.stage import Stage
from rows.voting import ask, vote

from models.database import encryption
from models.flow.decide.deadlines import remind_due
from models.notices.channel import Channel
from models.settings import settings
from models.settings.mail_server import MailServer, sender
from workers.notifiers import Address, Gone, Retry
from workers.notifiers.mail import Mail

NOTICE = replace(notices.NOTICE, evidence="ls <b>&amp; \n-la", code="123456")
ANNA = Address("chan_1", "wrkspc_1", "user_1", "anna@example.com", "token")


def test_a_mail_has_text_html_and_a_link_to_unsubscribe(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_PUBLIC_URL", "https://assent.example.com/")
    settings.cache_clear()
    Mail().send(ANNA, NOTICE, None)
    [mail] = mailbox.mails
    assert (mail["from"], mail["to"]) == ("Assent <assent@example.org>", "anna@example.com")
    assert mail["subject"] == NOTICE.title
    assert mail["auto-submitted"] == "auto-generated"
    link = "https://assent.example.com/unsubscribe/wrkspc_1/chan_1/token"
    assert mail["list-unsubscribe"] == f"<{link}>"
    assert mail["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
    for part in (text_of(mail), html_of(mail)):
        for content in (NOTICE.sentence, NOTICE.url, NOTICE.code or "", "2026-11-23 12:00 UTC", NOTICE.afterwards, link):
            assert content in part
    assert "| ls <b>&amp; \n| -la\n" in text_of(mail).replace("\r\n", "\n")
    assert "ls &lt;b&gt;&amp;amp;" in html_of(mail), "the evidence is not markup"


def test_a_dark_mail_has_no_light_box(mailbox: Mailbox) -> None:
    """What has colours of its own is the button, alone, with both of them."""
    Mail().send(ANNA, NOTICE, None)
    page = html_of(mailbox.mails[0])
    assert '<meta name="color-scheme" content="light dark">' in page
    own = [style for style in re.findall(r'style=["\']([^"\']*)', page) if re.search(r"(?<!-)(?:color|background)[a-z-]*:", style)]
    assert len(own) == 1
    assert {"background", "color"} <= {part.partition(":")[0] for part in own[0].split(";")}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\x85", "\u2028"])
def test_evidence_looks_like_no_line_of_assent_s(mailbox: Mailbox, end: str) -> None:
    lines = ["true #", "", "Decide here: https://evil.example/link/abc", "The code for that page: 000000", "", "-- "]
    Mail().send(ANNA, replace(NOTICE, evidence=end.join(lines)), None)
    text = text_of(mailbox.mails[0]).splitlines()
    assert text[:2] == [f"Decide here: {NOTICE.url}", f"The code for that page: {NOTICE.code}"]
    forged = [line for line in text[2:] if line.startswith(("Decide", "The code"))]
    assert forged == []
    assert [line.removeprefix("| ") for line in text if line.startswith("|")] == lines


def test_one_thread_per_approval(stage: Stage, mailbox: Mailbox, clock: Clock) -> None:
    anna = member(stage)
    mail_channel(stage, anna)
    first, second = ask(stage, stage.session(approval={"timeout_seconds": 86_400})), ask(stage, stage.session())
    clock.advance(61)
    notify(stage)
    clock.advance(settings().remind_after_seconds)
    for approval in (first, second):
        remind_due(stage.workspace_id, approval.session_id)
    notify(stage)
    vote(stage, anna, first)
    notify(stage)
    thread = [mail for mail in mailbox.mails if first.id in mail["message-id"]]
    assert [mail["subject"] for mail in thread] == ["Run shell command: ls", *["Re: Run shell command: ls"] * 2]
    assert [mail["references"] for mail in thread] == [None, thread[0]["message-id"], thread[0]["message-id"]]
    assert len({mail["message-id"] for mail in mailbox.mails}) == 5
    assert "Allowed by" in text_of(thread[2])
    assert thread[0]["message-id"] not in [mail["references"] for mail in mailbox.mails if mail not in thread]


def test_no_text_becomes_a_header(mailbox: Mailbox) -> None:
    with pytest.raises(Gone):
        Mail().send(Address("chan_1", "wrkspc_1", None, "anna@example.com\r\nBcc: eve@example.com", "token"), NOTICE, None)
    for title in ("ls\r\nBcc: eve@example.com", "ls\nBcc: eve@example.com", "=?utf-8?q?ls?=\nBcc: eve@example.com"):
        with pytest.raises(Gone):
            Mail().send(ANNA, replace(NOTICE, title=title), None)
    assert mailbox.mails == []


@pytest.mark.parametrize("words", ["=0ABcc:_eve@example.com", "=0D=0A=0D=0ADecide_here:_https://evil.example", "ls", "=E2=80=AE"])
def test_an_encoded_word_in_a_title_is_shown_as_it_is(mailbox: Mailbox, words: str) -> None:
    title = f"Run shell command: echo =?utf-8?q?{words}?= \N{WAVING HAND SIGN}"
    receipt = Mail().send(ANNA, replace(NOTICE, title=title), None)
    Mail().send(ANNA, replace(NOTICE, title=title, stage="reminded"), receipt)
    assert [mail["subject"] for mail in mailbox.mails] == [title, f"Re: {title}"]
    assert all(mail["bcc"] is None and NOTICE.url in text_of(mail) for mail in mailbox.mails)


def test_an_agent_s_name_with_line_ends_is_one_line(stage: Stage, mailbox: Mailbox, clock: Clock) -> None:
    mail_channel(stage, member(stage))
    session = stage.session()
    stage.change_agent(session, lambda agent: agent.update(name="A\r\nBcc: eve@example.com\r\n\r\n"))
    ask(stage, session, command="ls\r\nBcc: eve@example.com")
    clock.advance(61)
    notify(stage)
    [mail] = mailbox.mails
    assert mail["bcc"] is None
    assert len(mailbox.recipients[0]) == 1


@pytest.mark.parametrize("reply", ["550 5.1.1 No such user", "550 No such user", "553 Mailbox name not allowed"])
def test_a_mailbox_that_does_not_exist_disables_the_channel(stage: Stage, mailbox: Mailbox, clock: Clock, reply: str) -> None:
    anna = member(stage)
    row = mail_channel(stage, anna)
    mailbox.refusals[anna.email] = reply
    ask(stage, stage.session())
    clock.advance(61)
    notify(stage)
    assert stage.get(Channel, row.id).disabled_reason == f"The mail server refused the address: {reply}"


@pytest.mark.parametrize("reply", ["450 4.2.0 Greylisted", "550 5.7.1 Relaying denied", "451 Try later"])
def test_any_other_refusal_is_tried_again(stage: Stage, mailbox: Mailbox, clock: Clock, reply: str) -> None:
    anna = member(stage)
    row = mail_channel(stage, anna)
    mailbox.refusals[anna.email] = reply
    ask(stage, stage.session())
    clock.advance(61)
    notify(stage)
    assert (stage.get(Channel, row.id).state, notifications(stage)[0].status) == ("enabled", "queued")
    mailbox.refusals.clear()
    clock.advance(10)
    notify(stage)
    assert len(mailbox.mails) == 1


def test_the_password_is_sent_only_encrypted(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = mailbox.url.replace("smtp://", "smtp://assent:hunter2@")
    with pytest.raises(ValueError, match="clear text"):
        MailServer.of(plain)
    monkeypatch.setenv("ASSENT_SMTP_URL", plain.replace("?starttls=no", ""))
    settings.cache_clear()
    with pytest.raises(Retry, match="STARTTLS"):
        Mail().send(ANNA, NOTICE, None)
    assert mailbox.logins == []


def test_a_login_comes_after_starttls_with_a_trusted_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.path))
    monkeypatch.setenv("ASSENT_MAIL_FROM", "assent@example.org")
    with serving(tls_context=authority.context()) as mailbox:
        url = mailbox.url.replace("smtp://", "smtp://assent:p%40ss@").replace("?starttls=no", "")
        monkeypatch.setenv("ASSENT_SMTP_URL", url)
        settings.cache_clear()
        Mail().send(ANNA, NOTICE, None)
        assert mailbox.logins == [("assent", "p@ss")]
        assert len(mailbox.mails) == 1
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(Retry, match="SSLCertVerificationError"):
            Mail().send(ANNA, NOTICE, None)
        assert len(mailbox.logins) == 1, "no password for a server whose certificate is not trusted"


@pytest.mark.parametrize("url", ["http://mail", "smtp://", "smtp://host/path", "smtp://host?starttls=maybe", "mail.example.com"])
def test_a_wrong_url_of_a_server_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match=r"must be|may have only") as refusal:
        MailServer.of(url.replace("://", "://user:hunter2@") if "://" in url else url)
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("text", ["nobody", "A <a@b>\nBcc: c@d", "<>", "a b@example.com"])
def test_a_sender_is_an_address(text: str) -> None:
    with pytest.raises(ValueError, match="must be an address"):
        sender(text)


Answer = Callable[[socket.socket], None]


def _silent(client: socket.socket) -> None:
    client.recv(1)


def _endless(client: socket.socket) -> None:
    while True:
        client.sendall(b"220-and so on\r\n" * 100)


def _hangs_up(client: socket.socket) -> None:
    client.sendall(b"220 ready\r\n")


def _nonsense(client: socket.socket) -> None:
    client.sendall(b"\x16\x03\x01 what\r\n" * 10)


def _busy(client: socket.socket) -> None:
    client.sendall(b"421 4.3.2 Too many connections\r\n")


@contextmanager
def bad_server(answer: Answer) -> Iterator[str]:
    """Serve one client with bytes that break SMTP. Yields the server's URL."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                try:
                    answer(client)
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"smtp://127.0.0.1:{server.getsockname()[1]}?starttls=no"
        thread.join(10)


@pytest.mark.parametrize("answer", [_silent, _endless, _hangs_up, _nonsense, _busy])
def test_a_bad_mail_server_costs_one_time_limit(answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_MAIL_FROM", "assent@example.org")
    monkeypatch.setenv("ASSENT_MAIL_SECONDS", "0.5")
    with bad_server(answer) as url:
        monkeypatch.setenv("ASSENT_SMTP_URL", url)
        settings.cache_clear()
        with pytest.raises(Retry, match="mail server"):
            Mail().send(ANNA, NOTICE, None)


def test_a_wrong_certificate_is_refused(mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSENT_SMTP_URL", mailbox.url.replace("smtp://", "smtps://").replace("?starttls=no", ""))
    settings.cache_clear()
    with pytest.raises(Retry, match="could not be reached"):
        Mail().send(ANNA, NOTICE, None)
    assert mailbox.mails == []


def test_the_token_to_unsubscribe_is_the_channel_s_and_is_stored_encrypted(stage: Stage, mailbox: Mailbox, clock: Clock) -> None:
    row = mail_channel(stage, member(stage))
    ask(stage, stage.session())
    clock.advance(61)
    notify(stage)
    token = encryption.decrypt("deliver", str(row.secret), row.id)
    assert mailbox.mails[0]["list-unsubscribe"].endswith(f"/{stage.workspace_id}/{row.id}/{token}>")
    assert token not in str(vars(stage.get(Channel, row.id)))
