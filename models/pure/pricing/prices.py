"""Prices: what a request to a model costs, in US dollars. Decimals only: no float is ever part of an amount.

    price = list_price("anthropic", "claude-opus-5-5", at, context_tokens=9000)     None: the price is unknown
    price.cost(usage)                                                               Decimal("0.0421"), or None

List prices come with the package `genai-prices`, which is installed and never fetched.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from models.pure.pricing.usage import Usage

CURRENCY = "USD"
MILLION = Decimal(1_000_000)
THOUSAND = Decimal(1_000)
_CENT = Decimal("0.01")
_SOURCE = f"genai-prices {version('genai-prices')}"
MOST = Decimal(1_000_000)
"""The highest price of one unit that an operator may configure."""


@dataclass(frozen=True)
class Price:
    """Prices in US dollars: of tokens per million, of requests and searches per thousand. None is unknown."""

    source: str
    """`operator`, or the name and version of the list."""
    input: Decimal
    output: Decimal
    cache_read: Decimal
    cache_write_5m: Decimal
    cache_write_1h: Decimal
    web_search: Decimal | None = None
    request: Decimal = Decimal(0)
    """The fee of a request whatever its size."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Price":
        """Return a price from its JSON."""
        numbers = {name: None if value is None else Decimal(value) for name, value in fields.items() if name != "source"}
        return cls(fields["source"], **numbers)  # type: ignore[arg-type]

    @classmethod
    def configured(cls, prices: Mapping[str, Any]) -> "Price":
        """Return the price that an operator configures. Raises ValueError with the field.

        `prices` are dollars per million tokens, as strings or integers: `{"input": "0.5", "output": "1.5"}`, and optionally
        `cache_read`, `cache_write_5m`, `cache_write_1h` (the input's price by default), `web_search` and `request` (per thousand).
        """
        unknown = sorted(set(prices) - set(_CONFIGURABLE))
        if unknown:
            raise ValueError(f"{unknown[0]}: is not a price; use {', '.join(_CONFIGURABLE)}.")
        missing = [name for name in ("input", "output") if name not in prices]
        if missing:
            raise ValueError(f'{missing[0]}: is missing; give the price of a million tokens in US dollars, such as "0.5".')
        numbers = {name: _number(name, value) for name, value in prices.items()}
        of_input = dict.fromkeys(("cache_read", "cache_write_5m", "cache_write_1h"), numbers["input"])
        return cls("operator", **(of_input | numbers))

    @property
    def as_json(self) -> dict[str, str | None]:
        """The price as JSON, exact."""
        values = {name: getattr(self, name) for name in _CONFIGURABLE}
        return {"source": self.source} | {name: None if value is None else str(value) for name, value in values.items()}

    def cost(self, usage: Usage) -> Decimal | None:
        """Return what the usage costs. None if it has searches without a price. Pages that the provider fetches are free."""
        if usage.web_search_requests and self.web_search is None:
            return None
        searches = usage.web_search_requests * (self.web_search or Decimal(0)) / THOUSAND
        return self._input(usage) + usage.output_tokens * self.output / MILLION + searches + self.request / THOUSAND

    def savings(self, usage: Usage) -> Decimal:
        """Return how much less the input costs than it would without a cache. Negative if its writes cost more than it saved."""
        return usage.context_tokens * self.input / MILLION - self._input(usage)

    def _input(self, usage: Usage) -> Decimal:
        dollars = (
            usage.input_tokens * self.input
            + usage.cache_read_input_tokens * self.cache_read
            + usage.cache_creation_5m_input_tokens * self.cache_write_5m
            + usage.cache_creation_1h_input_tokens * self.cache_write_1h
        )
        return dollars / MILLION


_CONFIGURABLE = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "web_search", "request")


def _number(name: str, value: Any) -> Decimal:
    try:
        number = Decimal(value) if isinstance(value, str | int) and not isinstance(value, bool) else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite() or not 0 <= number <= MOST:
        raise ValueError(f'{name}: must be a number of US dollars from 0 to {MOST}, as a string such as "0.5".')
    return number


def list_price(provider: str, model: str, at: datetime, *, context_tokens: int = 0, url: str | None = None) -> Price | None:
    """Return the public price of a model at a time, or None if the list has no such model, or no price of its tokens.

    `url` is the provider's address, which names the provider if `provider` is a name of the operator's. Some models cost more for
    longer inputs: `context_tokens` is the whole input.
    """
    calculation = _calculated(provider, model, at, context_tokens, url)
    return _read(calculation.model_price, context_tokens) if calculation else None


def list_window(provider: str, model: str, at: datetime, *, url: str | None = None) -> int | None:
    """Return the model's window in tokens by the public list, or None if the list does not know it."""
    calculation = _calculated(provider, model, at, 0, url)
    return calculation.model.context_window if calculation else None


def _calculated(provider: str, model: str, at: datetime | None, context_tokens: int, url: str | None) -> Any | None:
    """Return the price of a request by the list; None if the list does not know the model."""
    if not _is_listed(provider, model, url):
        return None
    return _calculate(provider, model, at, context_tokens, url)


@lru_cache(maxsize=1000)
def _is_listed(provider: str, model: str, url: str | None) -> bool:
    """True if the list knows the model. Cached, since the list is searched from end to end for a model that it lacks."""
    try:
        _calculate(provider, model, None, 0, url)
    except LookupError:
        return False
    return True


def _calculate(provider: str, model: str, at: datetime | None, context_tokens: int, url: str | None) -> Any:
    import genai_prices  # 40 MB and half a second: only processes that price load it

    counts = genai_prices.Usage(input_tokens=context_tokens, output_tokens=0)
    where: Any = {"provider_api_url": url} if url is not None else {"provider_id": provider}
    return genai_prices.calc_price(counts, model, genai_request_timestamp=at, **where)


def _read(prices: Any, context_tokens: int) -> Price | None:
    def of(name: str, otherwise: Decimal | None = None) -> Decimal | None:
        value = getattr(prices, name)
        if value is None or isinstance(value, Decimal):
            return otherwise if value is None else value
        fits = [tier.price for tier in sorted(value.tiers, key=lambda tier: tier.start) if context_tokens > tier.start]
        return Decimal(fits[-1] if fits else value.base)

    tokens, output = of("input_mtok"), of("output_mtok")
    if tokens is None or output is None:
        return None
    write = of("cache_write_mtok", tokens)
    return Price(
        _SOURCE,
        tokens,
        output,
        cache_read=of("cache_read_mtok", tokens) or Decimal(0),
        cache_write_5m=of("cache_write_5m_mtok", write) or Decimal(0),
        cache_write_1h=of("cache_write_1h_mtok", write) or Decimal(0),
        web_search=of("web_searches_kcount"),
        request=of("requests_kcount") or Decimal(0),
    )


def cents(dollars: Decimal) -> str:
    """Return an amount in cents, rounded half up, as the wire has it: an integer in a string."""
    return str(int((dollars.quantize(_CENT, ROUND_HALF_UP) * 100).to_integral_value()))


def dollars_of(cents_: str) -> Decimal:
    """Return an amount of the wire in dollars."""
    return Decimal(cents_) / 100


def cents_in(dollars: str) -> str:
    """Return whole cents, as the wire has them, from a text such as `250`, `12.50` or `$12.50`. Raises ValueError."""
    amount = _TYPED.fullmatch(dollars.strip())
    if not amount:
        raise ValueError("must be US dollars with at most two decimals, such as 250 or 12.50.")
    return str(int(amount["dollars"] + (amount["cents"] or "").ljust(2, "0")))


_TYPED = re.compile(r"\$?(?P<dollars>[0-9]{1,15})(?:\.(?P<cents>[0-9]{0,2})0*)?")


def exact(dollars: Decimal) -> str:
    """Return an amount of dollars as text without an exponent or trailing zeros."""
    text = f"{dollars:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
