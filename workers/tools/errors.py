"""How a tool says no, and what nobody can say."""


class ToolError(Exception):
    """The tool says no, in plain words for the model. Its effect has ended or never began."""


LAPSED = "its worker did not renew its lease in time, so that others may have the call by now"


class OutcomeUnknown(Exception):
    """Nobody can prove that the call's effect has ended. A person must settle it."""
