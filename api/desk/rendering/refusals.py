"""Refusals as people read them on a page: the API's words, with the form's names of fields without ids and microseconds."""

import re

_FIELD = re.compile(r"[a-z_]+(\.[a-z0-9_]+)*")
_EMPTY = re.compile(r"String should have at least \d+ character")
_LABELS = {"url": "URL", "email": "E-mail address", "workspace_role": "Role", "rule.match": "Calls", "approval": "Approvers"}
_LABELS |= {"updated_input": "Input", "deny_message": "Why not", "denial_reasons": "Reasons", "body": "Form"}
"""What the forms call the fields of requests, where the field's own name is no label."""
_ID = r"[a-z]+_[0-9A-Za-z]{20,}"
_BY = re.compile(r"(is already \w+), by (?:[a-z]+:)?[^\s.]+")
"""The page says below who decided."""
_NAMED = re.compile(rf"(?:user|group):{_ID} \(([^)]*)\)")
"""A person or a group whose name stands beside its id."""
_BESIDE = re.compile(rf" \((?:[a-z_]+:)?{_ID}\)")
"""An id that stands beside a name."""
_GONE = re.compile(rf"^([a-z ]+) '{_ID}' was not found")
_NOUN = re.compile(
    rf"\b(?:the )?(approval|session|agent|thread|environment|(?:webhook )?endpoint|channel|grant) {_ID}\b", re.IGNORECASE
)
_PRINCIPAL = re.compile(rf"\b(user|group|api_key):{_ID}")
_PRINCIPALS = {"user": "this person", "group": "this group", "api_key": "an API key"}
_TOO_MANY = re.compile(r"List should have at most (\d+) items? after validation, not (\d+)")
_SETS = re.compile(r"in \{.*\}, the sets of all levels together,")
"""Names the approvers of each level by their ids."""
_STALE = re.compile(r"version: the agent is at version (\d+)")
_STALE_INPUT = ("expected_input_sha256", "Another voter has edited the input.")
"""Beginnings of refusals of a form that is bound to another input than the one that would run now."""
_QUOTED = re.compile(r"“.*”", re.DOTALL)
"""Somebody else's words, such as a command of an agent."""
_OF_PAGES = {
    "send user.interrupt and wait until it is idle, then": "stop the run and wait until it ends. Then",
    "allow it with updated_input, or deny": "edit the input, or deny",
}
"""What a page says in the place of words that name requests of the API."""
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z")


def sentence(text: str) -> str:
    """Return a refusal as sentences for a page: `email: String should have at least 3 characters` says what people read."""
    if text.startswith(_STALE_INPUT):
        return "The input has changed since this page was opened. Nothing was decided: look at it again."
    if stale := _STALE.match(text):
        return f"Version {stale[1]} was saved since this page was opened. Nothing was changed: open the page again."
    field, colon, fault = text.partition(": ")
    if not colon or not _FIELD.fullmatch(field):
        return _capital(_without_ids(text))
    label = _LABELS.get(field) or _capital(field.rpartition(".")[2].replace("_", " "))
    return f"{label}: {'must not be empty.' if _EMPTY.match(fault) else _without_ids(fault)}"


def _without_ids(text: str) -> str:
    """Return a text that names no id: `Approval appr_01… is already denied, by user:user_01….` is of `This approval`.

    What is quoted stays as it is."""
    if quote := _QUOTED.search(text):
        return f"{_without_ids(text[: quote.start()])}{quote[0]}{_without_ids(text[quote.end() :])}"
    text = _SETS.sub("named at every level,", _TOO_MANY.sub(r"at most \1, and these are \2", text))
    text = _GONE.sub(r"this \1 was not found", _BESIDE.sub("", _NAMED.sub(r"\1", _BY.sub(r"\1", text))))
    text = _PRINCIPAL.sub(lambda principal: _PRINCIPALS[principal[1]], _NOUN.sub(_this, text))
    for words, of_page in _OF_PAGES.items():
        text = text.replace(words, of_page)
    return _TIME.sub(r"\1 \2 UTC", text)


def _this(noun: re.Match[str]) -> str:
    return f"{'This' if noun[0][0].isupper() else 'this'} {noun[1].lower()}"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]
