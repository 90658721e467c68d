"""Masks secrets in a call's arguments, for people and logs.

A secret is recognised in three ways: by the tool's schema (`schemas.py`), by its name (`names.py`), or inside a text, by its own
form (`shapes.py`) or by the text before it (`leaders.py`). In a text only the secret is masked: one word, or the content of certain
quotes. A mask must never hide a second command from a person who approves the first. So in an ambiguous text, only the first word
of a secret is masked.

No library keeps that promise: scanners for secrets name a line or a value, and do not say which word of a command line may be
masked.

Values that were masked in a call's input are also masked in the call's output (`echoes.py`).
"""

from models.pure.masking.echoes import Echoes
from models.pure.masking.restoring import restore
from models.pure.masking.texts import MARKER
from models.pure.masking.values import Masked, mask, masked_paths

__all__ = ["MARKER", "Echoes", "Masked", "mask", "masked_paths", "restore"]
