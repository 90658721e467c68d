"""A program in a terminal, typed into as a person does: only what its screen shows is answered."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 60
_PROGRAM = "import os; from api.cli.main import main; os.open(os.ttyname(0), os.O_RDWR); main()"
"""Opening the terminal makes it the controlling one, so that Ctrl-C reaches the program."""
_STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal:
    """The other side of a program's terminal."""

    def __init__(self, master: int) -> None:
        self.master = master
        self.text = ""
        """All that the program has printed, without styles."""
        self._read_to = 0

    def wait_for(self, text: str) -> str:
        """Wait until the program prints this text after what was waited for before. Returns all that it printed up to there."""
        deadline = time.monotonic() + SECONDS
        while (at := self.text.find(text, self._read_to)) < 0:
            assert time.monotonic() < deadline, f"no {text!r} in {self.text[self._read_to :]!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    piece = os.read(self.master, 65536)
                except OSError:  # the program has ended
                    piece = b""
                assert piece, f"the program ended without {text!r}: {self.text[self._read_to :]!r}"
                self.text = _STYLE.sub("", self.text + piece.decode()).replace("\r\n", "\n")
        before, self._read_to = self.text[self._read_to : at], at + len(text)
        return before

    def type(self, keys: str) -> None:
        """Type these keys."""
        os.write(self.master, keys.encode())


@contextmanager
def terminal(*command: str, columns: int = 80) -> Iterator[Terminal]:
    """Run `assent` in a terminal of this width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}  # which pytest's workers may set
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *command], stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env=env
    )
    os.close(slave)
    try:
        yield Terminal(master)
    finally:
        process.kill()
        process.wait()
        os.close(master)
