"""Secrets in a call's arguments, kept from the eyes of people and logs: values in, values out.

A secret is found in three ways: the tool's schema says so (`schemas.py`), its name does (`names.py`), or it looks like one inside
a text (`shapes.py` by its own form, `leaders.py` by what stands before it). In a text only the secret is masked, and what is masked
there is one word, or what surely stands between two quotes. A mask must never hide a second command from whoever approves the
first, so where a text could be read in two ways, the rest of a secret of several words stays in sight.

This is ours for the promise that a mask hides no second command: scanners for secrets name a line or a value, and do not say which
word of a command line may be masked.

Values that were masked in a call's input are masked wherever they come back from the call, too (`echoes.py`).
"""

from models.pure.masking.echoes import Echoes
from models.pure.masking.restoring import restore
from models.pure.masking.texts import MARKER
from models.pure.masking.values import Masked, mask

__all__ = ["MARKER", "Echoes", "Masked", "mask", "restore"]
