"""Encrypted streams in the format of age (https://age-encryption.org): `age --decrypt --identity KEY FILE` reads them as well."""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyrage

from deploy.folder import CannotStart


def new_key() -> tuple[str, str]:
    """Return a new identity, which decrypts, and its recipient, for which everybody can encrypt."""
    identity = pyrage.x25519.Identity.generate()
    return str(identity), str(identity.to_public())


def recipients_of(texts: Sequence[str]) -> list[Any]:
    """Return the recipients of texts such as `age1...`. Raises CannotStart."""
    try:
        return [pyrage.x25519.Recipient.from_str(text.strip()) for text in texts]
    except pyrage.RecipientError as error:
        raise CannotStart(f"a recipient is not one of age (age1...): {error}") from None


def identities_in(file: Path) -> list[Any]:
    """Return the identities in a file of `assent backup key` or of `age-keygen`. Raises CannotStart."""
    try:
        lines = [line.strip() for line in file.read_text("ascii").splitlines()]
        return [pyrage.x25519.Identity.from_str(line) for line in lines if line and not line.startswith("#")]
    except (OSError, UnicodeDecodeError, pyrage.IdentityError) as error:
        raise CannotStart(f"{file} has no identity of age (AGE-SECRET-KEY-1...): {error}") from None


def encrypt(source: IO[bytes], target: IO[bytes], recipients: Sequence[Any]) -> None:
    """Encrypt a stream to its end."""
    pyrage.encrypt_io(source, target, recipients)


@contextmanager
def encrypting(target: IO[bytes], recipients: Sequence[Any]) -> Iterator[IO[bytes]]:
    """Give a stream whose bytes are encrypted to `target`. Raises the error of the encryption at the end."""
    with _through(lambda end: pyrage.encrypt_io(end, target, recipients), "wb") as stream:
        yield stream


@contextmanager
def decrypting(file: Path, identities: Sequence[Any]) -> Iterator[IO[bytes]]:
    """Give the content of an encrypted file as a stream. Its end is proven only once this context has ended without an error.

    Raises CannotStart if no identity fits, or if the file was changed or cut.
    """
    with file.open("rb") as source:
        try:
            with _through(lambda end: pyrage.decrypt_io(source, end, identities), "rb") as stream:
                yield stream
        except (pyrage.DecryptError, ValueError) as error:
            raise CannotStart(f"{file} cannot be decrypted: {error}") from None


@contextmanager
def _through(work: Callable[[IO[bytes]], None], mode: str) -> Iterator[IO[bytes]]:
    """Run `work` in a thread with one end of a pipe, and give the other end."""
    read_end, write_end = os.pipe()
    ours, theirs = (read_end, write_end) if mode == "rb" else (write_end, read_end)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            with os.fdopen(theirs, "wb" if mode == "rb" else "rb") as end:
                work(end)
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        with os.fdopen(ours, mode) as stream:
            yield stream
    finally:
        thread.join()
    if errors:
        raise errors[0]
