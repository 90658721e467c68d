"""The auditor's tools: read the audit in order, export it to a file, and verify that nobody changed it.

walk   ─▶ acts and heads, in order ─▶ file (JSON lines) ─▶ the same acts and heads, elsewhere
                    └──────────▶ verify ◀──────────────────────────┘
"""

from models.audit.verifying.exports import anchors_in, anchors_of
from models.audit.verifying.exports import check as check_export
from models.audit.verifying.file import NoExport
from models.audit.verifying.file import lines as export
from models.audit.verifying.file import read as read_export
from models.audit.verifying.recent import Beginning
from models.audit.verifying.verdict import AuditReport, Problem
from models.audit.verifying.verify import verify
from models.audit.verifying.walk import Act, Head, Item, walk

__all__ = [
    "Act",
    "AuditReport",
    "Beginning",
    "Head",
    "Item",
    "NoExport",
    "Problem",
    "anchors_in",
    "anchors_of",
    "check_export",
    "export",
    "read_export",
    "verify",
    "walk",
]
