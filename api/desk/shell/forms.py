"""The texts of a submitted form, and faults that the page shows beside their fields."""

from flask import request

from models.errors import Invalid


class Misfilled(Invalid):
    """Fields of a form have faults, by their names; the page shows each fault beside its field."""

    def __init__(self, faults: dict[str, str]) -> None:
        super().__init__("", " ".join(faults.values()))
        self.faults = faults


def text(name: str) -> str:
    """Return a text area's value. Its line ends are LF, though a browser sends CR LF."""
    return request.form.get(name, "").replace("\r\n", "\n")


def needed(name: str, remedy: str) -> str:
    """Return a text area's value. Raises Misfilled with the remedy if the text is blank."""
    value = text(name)
    if not value.strip():
        raise Misfilled({name: remedy})
    return value
