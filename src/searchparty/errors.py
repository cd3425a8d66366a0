"""Two vocabularies of things that go wrong.

`UserError` is a mistake in what a person gave us: the command prints one line per fault and exits with code 2.
`Failure` is something that went wrong at a service while a run was under way: it is data, is recorded once where it happened,
and the run goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class UserError(Exception):
    """A fault in the user's input, said in one line: what, where, and what to do next.

    Several faults that were found together (a recipe with three unknown keys) are given as several lines.
    """

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines: Sequence[str] = lines


def missing_package(package: str, extra: str, needed_for: str) -> UserError:
    """The error for an optional dependency that is not installed, with the exact command that installs it."""
    return UserError(
        f"{needed_for} needs the package {package}, which is not installed; run: pip install 'searchparty[{extra}]'"
    )


class FailureKind(StrEnum):
    """Why a model or a retriever gave no usable reply. The list is closed: new kinds are added here, nowhere else."""

    UNREACHABLE = "unreachable"
    """The connection was refused or broke off."""
    TIMEOUT = "timeout"
    """No complete reply within the deadline, all attempts included."""
    RATE_LIMITED = "rate_limited"
    """HTTP 429 until the attempts were used up."""
    SERVER_ERROR = "server_error"
    """HTTP 5xx until the attempts were used up, or an exception inside an in-process engine."""
    REJECTED = "rejected"
    """Any other HTTP 4xx: the same request would be rejected again, so it is not retried."""
    MALFORMED_REPLY = "malformed_reply"
    """A reply arrived, but not in the agreed form."""
    CONTEXT_OVERFLOW = "context_overflow"
    """The prompt and its generation budget do not fit the model's context window."""


@dataclass(frozen=True)
class Failure:
    """One failed request, as it is recorded in an episode.

    Attributes:
        source: the part that failed, `"model"` or `"retriever"`.
        kind: why, from the closed list.
        detail: one line for a person: status, address or exception, with credentials removed.
        attempts: how many times the request was sent.
    """

    source: str
    kind: FailureKind
    detail: str
    attempts: int = 1


class ServiceFailure(Exception):
    """Carries a `Failure` up to the boundary where it is recorded."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.source}: {failure.kind}: {failure.detail}")
        self.failure = failure
