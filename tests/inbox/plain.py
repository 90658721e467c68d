"""A person whose browser runs no scripts: reads pages over HTTP, follows their links, and fills and sends their forms.

plain.open("/inbox/webhooks/new")
plain.fill("URL", "https://a.example")
plain.press("Create the webhook")
assert plain.page.one("h1").text == "https://a.example"

This needs a tenth of a real browser's CPU time. How a page looks, and what its scripts do, only the real one can tell.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode, urljoin

import httpx2
from lxml import html
from people import Somebody

from api.door.browser import TOKEN_HEADER

FIELDS = "input:not([type=hidden]), select, textarea"
LINES = ("button", "dd", "details", "div", "dt", "h1", "h2", "h3", "li", "ol", "p", "pre", "small", "summary", "td", "th", "ul")
"""Elements whose text stands apart from what is beside it."""


class Part:
    """A part of a page."""

    def __init__(self, element: Any) -> None:
        self.element = element
        """An element of lxml."""

    def __repr__(self) -> str:
        return repr(self.text)

    def __contains__(self, words: str) -> bool:
        return words in self.text

    @property
    def text(self) -> str:
        """The text, with one space wherever it has any."""
        return " ".join(self.element.text_content().split())

    @property
    def name(self) -> str:
        """The name of a link, a button, a region or an image. A key that stands behind the words is not part of it."""
        return self.get("aria-label") or self.text.removesuffix("".join(self.texts("kbd"))).strip()

    @property
    def value(self) -> str | None:
        """The value of a field or of an option."""
        value: str | None = self.element.get("value", self.text) if self.element.tag == "option" else self.element.value
        return value

    def get(self, attribute: str) -> str:
        """The value of an attribute. Empty if there is none."""
        return str(self.element.get(attribute, ""))

    def all(self, css: str, words: str = "", *, name: str = "") -> list["Part"]:
        """The parts that a CSS selector finds and whose text contains `words`.

        With `name`, only those with this name; if there are none, those whose names begin with it.
        """
        parts = [part for part in map(Part, self.element.cssselect(css)) if words in part]
        if not name:
            return parts
        names = [(part.name, part) for part in parts]
        return [part for text, part in names if text == name] or [part for text, part in names if text.startswith(name)]

    def texts(self, css: str) -> list[str]:
        """The texts of the parts that a CSS selector finds."""
        return [part.text for part in self.all(css)]

    def one(self, css: str, words: str = "", *, name: str = "") -> "Part":
        """The only such part."""
        return self._only(self.all(css, words, name=name), f"{css} {words or name!r}")

    def field(self, label: str) -> "Part":
        """The only field with this label; if there is none, the only one whose label contains it."""
        labels = [(text, field) for field in self.all(FIELDS) for text in field._labels()]
        exact = [field for text, field in labels if text == label]
        return self._only(exact or [field for text, field in labels if label in text], f"field {label!r}")

    def fold(self) -> None:
        """Take away what folded details hide."""
        for part in self.all("details:not([open]) > :not(summary)"):
            part.element.drop_tree()

    def cells(self, table: str, words: str) -> list[str]:
        """The cells of a table's only row that contains `words`. `table`: the name of the region around the table."""
        return self.one("[role=region]", name=table).one("tbody tr", words).texts("th, td")

    def _labels(self) -> Iterator[str]:
        """The texts that name a field."""
        if self.element.label is not None:
            yield Part(self.element.label).text
        for around in self.element.iterancestors("label"):
            yield Part(around).text
        yield self.get("aria-label")

    def _only(self, parts: list["Part"], what: str) -> "Part":
        assert len(parts) == 1, f"{len(parts)} of {what} in: {self.text}"
        return parts[0]


class Plain:
    """A person at a page."""

    def __init__(self, client: httpx2.Client, somebody: Somebody) -> None:
        del client.headers[TOKEN_HEADER]  # only scripts send it; a form has it in a field
        self.client, self.somebody = client, somebody
        self.response: httpx2.Response

    def open(self, path: str = "/inbox") -> None:
        """Go to a page."""
        self._show(self.client.get(path, follow_redirects=True))

    @property
    def rows(self) -> list[Part]:
        """The lines of the list."""
        return self.page.all("ul.rows > li")

    def row(self, words: str) -> Part:
        """The only line of the list that contains `words`."""
        return self.page.one("ul.rows > li", words)

    def follow(self, link: str, *, within: Part | None = None) -> None:
        """Follow the link with this name. A page may have it twice: for a desk and for a phone."""
        address, *others = {part.get("href") for part in (within or self.page).all("a[href]", name=link)}
        assert not others, f"{link}: {address}, {others}"
        self.open(self._address(address))

    def fill(self, label: str, value: str, *, within: Part | None = None) -> None:
        """Enter a text into a field, or choose an option by its words or its value."""
        field = (within or self.page).field(label)
        options = field.all("option", name=value)
        if "multiple" in field.element.attrib:
            field.element.value.add(options[0].value)
        else:
            field.element.value = options[0].value if options else value

    def check(self, label: str, *, within: Part | None = None) -> None:
        """Check a box, or choose one of several."""
        field = (within or self.page).field(label)
        if field.get("type") == "radio":
            for other in self.page.all(f'[type=radio][name="{field.get("name")}"]'):
                other.element.checked = False
        field.element.checked = True

    def uncheck(self, label: str, *, within: Part | None = None) -> None:
        """Uncheck a box."""
        (within or self.page).field(label).element.checked = False

    def press(self, button: str, *, within: Part | None = None) -> None:
        """Press the only button with this name that is not disabled: send its form."""
        pressed = (within or self.page).one("button:not([disabled])", name=button)
        form = self._form(pressed)
        fields = [part.element for part in self.page.all("input, select, textarea") if self._form(part) is form]
        values = [pair for field in fields for pair in sent(field)]
        values += [(pressed.get("name"), pressed.get("value"))] if pressed.get("name") else []
        address = self._address(pressed.get("formaction") or form.get("action", ""))
        if form.method == "GET":
            self.open(f"{address.partition('?')[0]}?{urlencode(values)}")
        else:
            body = {"content": urlencode(values), "headers": {"content-type": "application/x-www-form-urlencoded"}}
            self._show(self.client.post(address, follow_redirects=True, **body))

    def _form(self, part: Part) -> Any:
        """The form that an element belongs to: the one that it names, or the one around it."""
        if name := part.get("form"):
            return self.page.one(f'form[id="{name}"]').element
        return next(part.element.iterancestors("form"), None)

    def _address(self, href: str) -> str:
        return urljoin(str(self.response.url), href)

    def _show(self, response: httpx2.Response) -> None:
        self.response, self.page = response, Part(html.document_fromstring(response.text))
        for area in self.page.element.iter("textarea"):
            area.text = (area.text or "").removeprefix("\n")  # as HTML says
        for element in self.page.element.iter(*LINES):
            element.text, element.tail = f" {element.text or ''}", f" {element.tail or ''}"


def sent(field: Any) -> list[tuple[str, str]]:
    """Return what a form sends for a field: its name and each of its values."""
    if not field.name or "disabled" in field.attrib or (field.tag == "input" and field.checkable and not field.checked):
        return []
    values = field.value if "multiple" in field.attrib else [field.value or ""]
    return [(field.name, value) for value in values]
