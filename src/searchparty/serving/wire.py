"""Requests to a served team, checked: the native body of `POST /ask` and OpenAI's of `POST /v1/chat/completions`.

Unknown fields are refused in the native one. OpenAI's clients send many that have no meaning here (`temperature`,
`max_tokens`): how tokens are drawn is the recipe's affair, and these are passed over; what would change the form of the answer
is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from searchparty.http_server.asgi import RequestError, bad_request, flag, json_object

MOST_SAMPLES = 64
_OUT_OF_REACH = ("tools", "functions", "logprobs", "top_logprobs", "audio", "prediction")
"""Fields whose being passed over would be a wrong answer; refused where they ask for anything."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question. `seed` None takes the server's."""

    question: str
    samples: int = 1
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class ChatAsked:
    """A question in OpenAI's form."""

    asked: Asked
    stream: bool
    include_usage: bool
    """In a stream: whether the last chunk tells the tokens."""


def parse_ask(body: bytes) -> Asked:
    """Check the body of `POST /ask`. Raises RequestError 400 with what is wrong."""
    record = json_object(body)
    if unknown := sorted(record.keys() - {"question", "samples", "seed"}):
        raise bad_request(f"unknown field {unknown[0]!r}; there are question, samples and seed")
    return Asked(_text(record.get("question"), "'question'"), _samples(record, "samples"), _seed(record))


def parse_chat(body: bytes, team: str) -> ChatAsked:
    """Check the body of `POST /v1/chat/completions`; the question is the last message of the user.

    Raises:
        RequestError: 400 with what is wrong, 404 for a model that is not the served team.
    """
    record = json_object(body)
    if (model := record.get("model")) is not None and model != team:
        raise RequestError(404, f"the model {model!r} is not served here; there is {team!r}", "model_not_found")
    for name in _OUT_OF_REACH:
        if record.get(name):
            raise bad_request(f"{name!r} is not possible: a team answers in text, and names its evidence at POST /ask")
    form = record.get("response_format")
    if form is not None and (not isinstance(form, dict) or form.get("type") != "text"):
        raise bad_request("'response_format' is not possible: a team answers in text")
    options = record.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise bad_request("'stream_options' must be an object")
    asked = Asked(_last_of_user(record.get("messages")), _samples(record, "n"), _seed(record))
    return ChatAsked(asked, flag(record, "stream"), flag(options or {}, "include_usage"))


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise bad_request(f"{what} must be a text")
    if not value.strip():
        raise bad_request(f"{what} is empty")
    return value


def _whole(record: dict[str, Any], name: str, least: int, most: int) -> int | None:
    value = record.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most):
        raise bad_request(f"{name!r} must be a whole number from {least} to {most}")
    return value


def _samples(record: dict[str, Any], name: str) -> int:
    return _whole(record, name, 1, MOST_SAMPLES) or 1


def _seed(record: dict[str, Any]) -> int | None:
    return _whole(record, "seed", 0, 2**63 - 1)


def _last_of_user(messages: Any) -> str:
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise bad_request("'messages' must be a list of objects")
    content = next((message.get("content") for message in reversed(messages) if message.get("role") == "user"), None)
    if content is None:
        raise bad_request("'messages' holds none of role 'user' with a content: the last one is the question")
    if isinstance(content, list):
        if not all(isinstance(part, dict) and part.get("type") == "text" for part in content):
            raise bad_request("the question must be text: its message holds a part of another type")
        content = "\n".join(_text(part.get("text"), "a part of the question") for part in content)
    return _text(content, "the content of the last message of the user")
