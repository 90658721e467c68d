"""WHAT AUDITORS DO: read the audit in order, keep it as a file, and find out whether it is what was written.

walk   ─▶ acts and heads, in order ─▶ file (JSON lines) ─▶ the same acts and heads, elsewhere
                    └──────────▶ verify ◀──────────────────────────┘
"""

from models.auditing.file import NoExport
from models.auditing.file import lines as export
from models.auditing.file import read as read_export
from models.auditing.verdict import Problem, Report
from models.auditing.verify import verify
from models.auditing.walk import Act, Head, Item, walk

__all__ = ["Act", "Head", "Item", "NoExport", "Problem", "Report", "export", "read_export", "verify", "walk"]
