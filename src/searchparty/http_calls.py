"""What every HTTP client here agrees on: local addresses, how long a server asks to wait, and that no secret is printed.

Knows nothing of models or retrievers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import SplitResult, urlsplit

from searchparty.errors import UserError

TOKEN_VARIABLE = "SEARCHPARTY_RETRIEVER_TOKEN"
"""Environment variable with what a retrieval server, or a store, asks for."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that are never reached through a proxy."""


def read_address(url: str, secret_variable: str) -> SplitResult:
    """The parts of an http(s) address.

    Args:
        secret_variable: the environment variable that holds what would otherwise be put into the address.

    Raises:
        UserError: for anything else, and for an address that carries a user name or password: it would be written into the run.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UserError(f"{without_userinfo(url)}: not an address ({error}); give http://host:port") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"{without_userinfo(url)}: not an address; give http://host:port")
    if parts.username or parts.password:
        raise UserError(f"{without_userinfo(url)}: an address may hold no password; put a key into {secret_variable}")
    return parts


def without_userinfo(url: str) -> str:
    """The address without anything that stands before an `@`."""
    scheme, separator, rest = url.rpartition("://")
    return scheme + separator + rest.rpartition("@")[2]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks to wait, given in seconds or as a date; None if it does not say, or says it unreadably."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        seconds = float(value) if value.strip().isdecimal() else parsedate_to_datetime(value).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return max(seconds, 0.0)


def error_line(reply: bytes, secret: str | None, longest: int = 300) -> str:
    """The beginning of a server's reply as one printable line. The secret is blotted out before anything is cut."""
    text = blot(reply.decode("utf-8", "replace"), secret)
    line = " ".join(text[: 4 * longest].split())
    return "".join(character for character in line if character.isprintable())[:longest]


def blot(text: str, secret: str | None) -> str:
    """The text with the secret replaced, wherever it stands."""
    return text.replace(secret, "***") if secret else text
