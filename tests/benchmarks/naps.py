"""A toolset of one tool that sleeps."""

import time

from assent import Toolset

naps = Toolset("naps")


@naps.tool(effect="write", idempotent=False)
def nap(seconds: float, number: int) -> str:
    """Sleep."""
    time.sleep(seconds)
    return f"{number} slept"
