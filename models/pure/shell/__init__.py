"""Parses the commands of a command line with a grammar of bash. Reports a doubt wherever the parse is uncertain."""

from models.pure.shell.git_commands import plain
from models.pure.shell.known_programs import only_reads, unknown
from models.pure.shell.line import CommandLine, Words, in_directory, read
from models.pure.shell.words import fixed_beginning

__all__ = ["CommandLine", "Words", "fixed_beginning", "in_directory", "only_reads", "plain", "read", "unknown"]
