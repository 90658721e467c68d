"""What a command line runs, read with bash's own grammar: values in, values out, and doubt wherever there is room for it."""

from models.pure.shell.known_programs import unknown
from models.pure.shell.line import Line, Words, read
from models.pure.shell.words import fixed_beginning

__all__ = ["Line", "Words", "fixed_beginning", "read", "unknown"]
