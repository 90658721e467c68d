"""The buttons of a message in Slack: each names the approval and the input that the message shows."""

import re
from dataclasses import dataclass
from typing import Literal

_VALUE = re.compile(r"(wrkspc_[0-9A-Za-z]{1,64}) (appr_[0-9A-Za-z]{1,64}) ([0-9a-f]{64})")

Result = Literal["allow", "deny"]
RESULTS: dict[str, Result] = {"assent_allow": "allow", "assent_deny": "deny"}
"""By the button's `action_id`: the decision."""


@dataclass(frozen=True)
class Button:
    """The value of a button."""

    workspace_id: str
    approval_id: str
    input_sha256: str
    """The hash of the input that the message shows."""

    @property
    def value(self) -> str:
        """The text that Slack sends back with a click; some 170 of at most 2000 characters."""
        return f"{self.workspace_id} {self.approval_id} {self.input_sha256}"

    @classmethod
    def of(cls, value: str) -> "Button | None":
        """Return the button with this value. None for a value that no button of ours has."""
        match = _VALUE.fullmatch(value)
        return cls(*match.groups()) if match else None
