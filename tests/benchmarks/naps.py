"""A toolset of one tool, which takes as long as it is told to and does nothing."""

import time

from assent import Toolset

naps = Toolset("naps")


@naps.tool(effect="write", idempotent=False)
def nap(seconds: float, number: int) -> str:
    """Take so long."""
    time.sleep(seconds)
    return f"{number} slept"
