"""Python's collector of cyclic garbage, in a process that has started up: what is there by then stays for good.

Left alone it went through all of it again and again: some 7 % of a worker's time, and each full collection held up every turn of
the process for a tenth of a second.
"""

import gc

YOUNG = 10_000
"""Objects made and not yet freed, after which the youngest are looked at. Python's own 700 is a fraction of one turn's."""


def leave_what_stays() -> None:
    """Look no more at what exists now, and less often at what comes."""
    gc.freeze()
    gc.set_threshold(YOUNG, 10, 10)
