"""The values of a submitted form: texts as people wrote them, and faults that the page shows beside their fields."""

from flask import request

from models.errors import Invalid


class Misfilled(Invalid):
    """Fields of a form are not right; the page shows each fault beside its field."""

    def __init__(self, faults: dict[str, str]) -> None:
        super().__init__("", " ".join(faults.values()))
        self.faults = faults


def text(name: str) -> str:
    """A text area's value. A browser sends every line end as CR LF."""
    return request.form.get(name, "").replace("\r\n", "\n")


def needed(name: str, remedy: str) -> str:
    """A text area's value. Raises Misfilled with the remedy if the text is empty."""
    value = text(name)
    if not value.strip():
        raise Misfilled({name: remedy})
    return value
