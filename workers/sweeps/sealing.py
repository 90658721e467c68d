"""The sweeps of the audit: it is sealed, and cut behind its anchors."""

import time

from models.audit import seal_sweep
from models.audit.cutting import sweep as cutting
from models.database.transactions import Hint
from models.operate.failing import isolated
from models.operate.metrics import adding_up
from workers import enqueue
from workers.celery import app
from workers.outcome import MOST_SECONDS, Sweep, did

_seals = seal_sweep.SealSweep()
_MOST_PASSED_ON = 3
"""How often one sweep of the seals is passed on to whichever process takes it."""


@app.task(name="sweep.seal_audit", base=Sweep)
def seal_audit(passed_on: str = "0") -> str:
    """Seal the new audit rows of all chains, and sign them.

    A process that leaves chains to others passes the sweep on. Else it could take every sweep of a minute, by chance, and
    raise the alarm that nobody seals. `passed_on` says how often that happened.
    """
    chains = _seals.run()
    if _seals.stands_aside and int(passed_on) < _MOST_PASSED_ON:
        enqueue.publish([Hint("sweep.seal_audit", (str(int(passed_on) + 1),))], {})
    if _seals.sealed_until is not None:
        adding_up.reach_seal(_seals.sealed_until.timestamp())
    return did("sealed chains of", chains)


@app.task(name="sweep.cut_audit", base=Sweep)
def cut_audit() -> str:
    """Delete the acts of the audit behind anchors that are sealed, one anchor after the other, until the time is over."""
    until, acts = time.monotonic() + MOST_SECONDS, 0
    for anchor in cutting.due():
        if time.monotonic() >= until:
            break
        with isolated(cutting.TASK, anchor.subject_id, anchor.workspace_id):
            acts += cutting.cut(anchor) or 0
    return did("cut acts:", acts)
