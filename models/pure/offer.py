"""What people may decide about an approval of a tool's call, and how far a grant may reach. People may always deny."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Option = Literal["once", "session", "always", "edit", "answer"]
OPTIONS: tuple[Option, ...] = get_args(Option)
GrantScope = Literal["session", "always"]
SCOPES: tuple[GrantScope, ...] = get_args(GrantScope)
"""The scopes of a grant, the narrower first. Both are options."""
Widest = Literal["tool", "exact"]
LEVELS = ("workspace", "agent", "toolset", "tool", "author")
"""The levels of settings, in the order in which they are combined. Those of a thread's parent are behind the workspace's."""
PARENT = "parent"
"""The name of all levels of settings of a thread's parent."""
INLINE = "inline"
"""The level that leaves out grants for all sessions, because the agent of the call exists in its thread alone."""

_IN_WORDS: dict[Option, str] = {
    "once": "allow once",
    "session": "allow for the session",
    "always": "allow always",
    "edit": "edit the input",
    "answer": "answer in the tool's place",
}
_SETTINGS_OF = {
    "workspace": "the approval settings of the workspace",
    "agent": "the approval settings of the agent",
    "toolset": "the approval settings of the toolset",
    "tool": "the approval settings of the tool",
    "author": "the settings of the tool's author",
    PARENT: "the approval settings of the parent's agent",
    INLINE: "the rules for agents that their coordinator defines",
}


@dataclass(frozen=True)
class Offer:
    """The options that people have. A default offer has all of them."""

    missing_options: tuple[tuple[Option, str], ...] = ()
    """The options that are not offered, in the order of OPTIONS, each with the level that leaves it out."""
    exact_by: str = ""
    """The level that offers grants for one exact input only; empty if grants may cover every call of the tool."""
    default_scope: GrantScope | None = None
    """The scope that a form suggests for a grant, as it is set."""

    @classmethod
    def at(cls, level: str, settings: Mapping[str, Any]) -> "Offer":
        """Return the offer of one level of `approval` settings."""
        options = settings.get("options")
        left_out = [] if options is None else [option for option in OPTIONS if option not in options]
        exact_by = level if settings.get("widest_match") == "exact" else ""
        return cls(tuple((option, level) for option in left_out), exact_by, settings.get("default_scope"))

    def and_also(self, other: "Offer") -> "Offer":
        """Return the offer of the options that both have, with the narrower match and the narrower suggestion."""
        levels = {**dict(other.missing_options), **dict(self.missing_options)}
        scopes = {self.default_scope, other.default_scope}
        return Offer(
            tuple((option, levels[option]) for option in OPTIONS if option in levels),
            self.exact_by or other.exact_by,
            next((scope for scope in SCOPES if scope in scopes), None),
        )

    @property
    def options(self) -> list[Option]:
        """The options that are offered beside denying."""
        return [option for option in OPTIONS if self.has(option)]

    def has(self, option: str) -> bool:
        """True if the option is offered."""
        return option not in dict(self.missing_options)

    @property
    def scopes(self) -> list[GrantScope]:
        """The scopes that a grant may have."""
        return [scope for scope in SCOPES if self.has(scope)]

    @property
    def scope(self) -> GrantScope | None:
        """The scope that a form suggests for a grant; None if no grant is offered."""
        default = self.default_scope or SCOPES[0]
        return default if default in self.scopes else next(iter(self.scopes), None)

    @property
    def widest(self) -> Widest:
        """The widest match of a grant, and the match of a grant whose decision names none."""
        return "exact" if self.exact_by else "tool"

    def gives(self, scope: str, *, exact: bool) -> bool:
        """True if a grant with this scope is offered. `exact`: the grant covers one exact input only."""
        return scope in self.scopes and (exact or not self.exact_by)

    def why_not(self, tool: str, *options: str) -> str:
        """Return a sentence for the first of these options that is not offered; empty if all are offered."""
        for option, level in self.missing_options:
            if option in options:
                choices = ", ".join(self.in_words)
                return f"{tool} does not offer to {_IN_WORDS[option]}: {_SETTINGS_OF[level]} leave it out. Offered: {choices}."
        return ""

    def why_no_grant(self, tool: str, scope: str, *, exact: bool) -> str:
        """Return a sentence that says why a grant with this scope is not offered; empty if it is offered."""
        if why := self.why_not(tool, scope):
            return why
        if exact or not self.exact_by:
            return ""
        return f"A grant for {tool} may cover one exact input only, by {_SETTINGS_OF[self.exact_by]}: send match exact."

    @property
    def in_words(self) -> list[str]:
        """The options that are offered, in words, denying included."""
        return [_IN_WORDS[option] for option in self.options] + ["deny"]

    @property
    def left_out(self) -> dict[Option, str]:
        """The options that are not offered, each with the settings that leave it out, in words."""
        return {option: _SETTINGS_OF[level] for option, level in self.missing_options}

    @property
    def limits(self) -> list[str]:
        """A sentence for each level that leaves options out or narrows grants; none for an offer of everything."""
        by: dict[str, list[str]] = {}
        for option, level in self.missing_options:
            by.setdefault(level, []).append(_IN_WORDS[option])
        sentences = [f"Not offered by {_SETTINGS_OF[level]}: {', '.join(options)}." for level, options in by.items()]
        if self.exact_by and self.scopes:
            sentences.append(f"A grant covers one exact input only, by {_SETTINGS_OF[self.exact_by]}.")
        return sentences

    @property
    def as_json(self) -> dict[str, Any] | None:
        """The offer as JSON; None if it has every option and suggests nothing."""
        fields = {"withheld": dict(self.missing_options), "exact_by": self.exact_by, "default_scope": self.default_scope}
        return {name: value for name, value in fields.items() if value} or None

    @classmethod
    def of(cls, fields: Mapping[str, Any] | None) -> "Offer":
        """Return the offer from its JSON."""
        if fields is None:
            return cls()
        levels = fields.get("withheld") or {}
        in_order = tuple((option, levels[option]) for option in OPTIONS if option in levels)
        return cls(in_order, fields.get("exact_by", ""), fields.get("default_scope"))


EVERYTHING = Offer()
"""The offer of all options."""
IN_ITS_THREAD = Offer((("always", INLINE),))
"""The offer for an agent that exists in its thread alone."""
