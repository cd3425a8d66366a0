"""A file of prices: what a million tokens of each model cost on a certain day. Users copy it, edit it and date it.

A model without a price is an error before a run begins, never a cost of 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from pydantic import Field

from searchparty.config.load import load_recipe
from searchparty.config.recipe import Strict
from searchparty.errors import UserError

Amount = Annotated[float, Field(ge=0)]


class Price(Strict):
    """USD for a million tokens."""

    input: Amount
    output: Amount
    cached_input: Amount | None = None
    """Input that a server had in its cache; None where it costs what other input costs."""


class Prices(Strict):
    """One file of prices."""

    dated: date
    """The day on which they held."""
    source: str
    """Where they come from."""
    search: Amount = 0.0
    """USD for one retrieval call."""
    models: dict[str, Price]
    """By the name under which a recipe speaks of the model: an endpoint's model name, else the spec itself."""

    def of(self, identity: str) -> Price | None:
        """The price of the model with this recorded identity; None if the file has none."""
        return self.models.get(priced_name(identity))


def load_prices(path: Path) -> Prices:
    """Read a file of prices. Raises UserError with a line for every fault in it."""
    if not path.is_file():
        raise UserError(f"{path}: no such file of prices; check the path")
    return load_recipe(Prices, path, (), {})


def priced_name(identity: str) -> str:
    """The name under which a model's price is looked up: what follows `#` in an endpoint's identity, else its first word."""
    first = identity.split(" ")[0]
    is_endpoint = first.startswith(("http://", "https://"))
    return (first.partition("#")[2] if is_endpoint else "") or first


def check_prices(prices: Prices, identities: Iterable[str], place: Path | str) -> None:
    """Refuse prices that do not name every model in use; `place` says where they stand.

    Raises UserError with a line for each that is missing.
    """
    lines = []
    for name in dict.fromkeys(map(priced_name, identities)):
        if name in prices.models:
            continue
        near = get_close_matches(name, prices.models, n=1)
        hint = f"did you mean {name} where it says {near[0]}?" if near else f"there are: {', '.join(prices.models) or 'none'}"
        lines.append(f"{place}: models: no price for {name}, which is in use; add it ({hint})")
    if lines:
        raise UserError(*lines)
