"""Decisions: what a person says about an approval. Every route and page builds one, and the verbs take no other shape."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from models.audit.text import Text
from models.errors import Invalid
from models.pure.json.canonical import canonical_text, digest

Scope = Literal["once", "session", "always"]


@dataclass(frozen=True)
class Decision:
    """A person's decision about one approval."""

    result: Literal["allow", "deny"] | None = None
    deny_message: str | None = None
    interrupt: bool = False
    """With deny: the run ends."""
    updated_input: dict[str, Any] | None = None
    """With allow: the whole input that runs instead of the proposed input."""
    respond: tuple[dict[str, Any], ...] = ()
    """With allow: the result, as content blocks. The tool does not run."""
    scope: Scope = "once"
    """With allow: `session` and `always` also create a grant."""
    match: str | None = None
    """The calls that the grant covers: `tool`, `exact` or a rule's text."""
    matches: tuple[str, ...] = ()
    """Instead of `match`: a rule's text for each of several grants, such as one for each command of a line."""
    expires_in_seconds: float | None = None
    """Lifetime of the grant, or of each."""
    max_uses: int | None = None
    """Most calls that the grant allows, or each."""
    include_sub_agents: bool = False
    """With scope `session`: the grant covers the calls of every agent of the session."""
    outcome: Literal["rerun", "happened", "give_up"] | None = None
    """For a call whose outcome is unknown, instead of `result`."""
    content: tuple[dict[str, Any], ...] = ()
    """With `happened`: the result, as content blocks."""
    answers: dict[str, Any] | None = None
    """With allow, for a call with questions: `{key: {"action": "accept" | "decline" | "cancel", "content": {...}?}}`."""
    expected_input_sha256: str | None = None
    """The hash of the input that the person was shown. If another input would run, the decision is a conflict."""
    grant_id: str | None = None
    """The grant that decided; None if a person decided."""
    link_id: str | None = None
    """The link in a message by which the person decided; None if the person was signed in, or an API key decided."""

    def check(self) -> None:
        """Raise Invalid with the field if the fields do not go together."""
        if self.outcome is None and self.result is None:
            raise Invalid("result", "should be allow or deny.")
        if self.result != "deny" and (self.interrupt or (self.deny_message and self.outcome != "give_up")):
            raise Invalid("result", "deny_message and interrupt go with deny only.")
        if self.result != "allow" and (field := self._first_present("updated_input", "respond", "answers")):
            raise Invalid(field, "goes with result allow only.")
        if self.updated_input is not None and self.respond:
            raise Invalid("respond", "is the answer in the tool's place, and updated_input lets the tool run: send one of them.")
        self._check_scope()

    def _check_scope(self) -> None:
        if self.scope == "once":
            if field := self._first_present("match", "matches", "expires_in_seconds", "max_uses", "include_sub_agents"):
                raise Invalid(field, "describes a grant: send it with scope session or always.")
        elif self.result != "allow":
            raise Invalid("scope", "reaches beyond this call only with allow: what is denied is asked again.")
        elif self._first_present("updated_input", "respond"):
            raise Invalid("scope", "reaches beyond this call only for the input as it was proposed: send once.")
        elif self.match and self.matches:
            raise Invalid("matches", "are several grants, and match is one: send one of them.")
        elif self.scope == "always" and self.include_sub_agents:
            raise Invalid("include_sub_agents", "is for one session: send scope session, or leave it out.")

    def _first_present(self, *fields: str) -> str | None:
        return next((field for field in fields if getattr(self, field) not in (None, (), False)), None)

    @property
    def stored(self) -> dict[str, Any]:
        """The decision as its row keeps it; a repeated decision is equal. Hashes replace inputs and answers."""
        fields = {name: value for name, value in vars(self).items() if value and name not in _STORED_OTHERWISE}
        if self.scope != "once":
            fields["scope"] = self.scope
        for name in ("content", "respond", "matches"):
            if getattr(self, name):
                fields[name] = list(getattr(self, name))
        for name in ("updated_input", "answers"):
            if getattr(self, name) is not None:
                fields[f"{name}_sha256"] = digest(getattr(self, name))
        return fields

    @property
    def noted(self) -> dict[str, Any]:
        """The decision as the audit keeps it: with hashes of results, and the hash of the input that was shown to the decider.

        Texts can be erased. So can the hashes of answers, because a short answer can be guessed from its hash.
        """
        details = self.stored
        if self.expected_input_sha256:
            details["shown_sha256"] = self.expected_input_sha256
        if self.link_id:
            details |= {"via": "link", "link": self.link_id}
        details |= {f"{name}_sha256": digest(details.pop(name)) for name in ("content", "respond") if name in details}
        details |= {"matches": canonical_text(details["matches"])} if self.matches else {}
        return {name: Text(value) if name in _TEXTS else value for name, value in details.items()}


def choice_of(decision: Mapping[str, Any]) -> dict[str, Any]:
    """Return the effects of a stored decision on its call. Votes count together if their choices and their inputs are equal.

    A field belongs to the choice unless `_NO_CHOICE` lists it, so a new field cannot be left out of the comparison.
    """
    return {name: value for name, value in decision.items() if name not in _NO_CHOICE}


WRITTEN = frozenset({"deny_message", "match", "matches", "respond", "content"})
"""The fields in which a person may repeat a secret."""
GRANT_FIELDS = ("scope", "match", "matches", "expires_in_seconds", "max_uses", "include_sub_agents")
"""The fields that describe a grant. A decision whose voters differ in them creates none."""
_NO_CHOICE = frozenset({*GRANT_FIELDS, "grant_id", "updated_input_sha256"})
"""What a vote may say differently: the grant, and an edit, which the hash of the input that would run already tells apart."""
_TEXTS = frozenset({"deny_message", "match", "matches", "content_sha256", "respond_sha256", "answers_sha256"})
_STORED_OTHERWISE = frozenset(
    {"expected_input_sha256", "updated_input", "answers", "scope", "content", "respond", "matches", "link_id"}
)
