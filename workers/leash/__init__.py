"""Runs commands of which nothing outlives its call, its limits, its worker or its worker's lease. README.md says how.

ended = leash.run(command, seconds, cancelled, output.add)    # one command, to its end
process = leash.Leash(command)                                # a process that serves several calls
argv, env = leash.launcher([program, ...])                    # a process that other code starts
leash.extend(leash.now() + 60)                                # the lease, in which all of them may run
"""

from workers.leash.lease import LAPSED, extend, lapsed, now, until
from workers.leash.programs import quota
from workers.leash.running import DIRECTORY_FD, Command, CommandEnd, Leash, MayBeAlive, NotStarted, Walls, launcher, run

__all__ = [
    "DIRECTORY_FD",
    "LAPSED",
    "Command",
    "CommandEnd",
    "Leash",
    "MayBeAlive",
    "NotStarted",
    "Walls",
    "extend",
    "lapsed",
    "launcher",
    "now",
    "quota",
    "run",
    "until",
]
