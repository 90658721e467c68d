"""`python -m assent_server`: the command `assent`, for programs that know an interpreter but not its folder of commands."""

from . import main

main()
