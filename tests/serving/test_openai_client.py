"""OpenAI's own client against a served team."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from serving_factories import Gate, serving

from playing import Lines, good_lines, scripted_model
from searchparty.errors import Failure, FailureKind
from searchparty.serving.service import Limits
from searchparty.teams.baselines import Direct
from searchparty.teams.chained import Chained

openai = pytest.importorskip("openai")
ASKED = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is the capital of France?"}]


def client_of(served: Any, key: str = "unused") -> Any:
    return openai.OpenAI(base_url=f"{served.base_url}/v1", api_key=key, max_retries=0)


@pytest.fixture
def client() -> Iterator[Any]:
    with serving(Chained(), scripted_model(good_lines()), token="key") as served:
        yield client_of(served, "key")


def test_it_lists_the_team_and_gets_its_answer(client: Any) -> None:
    assert [model.id for model in client.models.list()] == ["chained"]
    reply = client.chat.completions.create(model="chained", messages=ASKED, temperature=0.2, max_tokens=9, n=2)
    assert [choice.message.content for choice in reply.choices] == ["Paris", "Paris"]
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_it_reads_a_stream(client: Any) -> None:
    chunks = list(client.chat.completions.create(model="chained", messages=ASKED, stream=True))
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert "".join(delta.content or "" for delta in deltas) == "Paris"
    assert "searcher.1: <search>" in "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_its_exceptions_are_those_of_the_kinds_of_refusal(client: Any) -> None:
    with pytest.raises(openai.NotFoundError, match="there is 'chained'"):
        client.chat.completions.create(model="gpt-4o-mini", messages=ASKED)
    with pytest.raises(openai.BadRequestError, match="'messages' holds none"):
        client.chat.completions.create(model="chained", messages=[])
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").models.list()


def test_a_failing_service_is_an_exception_in_a_stream_too() -> None:
    down = scripted_model(Lines({"answerer": [Failure("model", FailureKind.UNREACHABLE, "gone")]}))
    with serving(Direct(), down) as served, pytest.raises(openai.APIError, match="model_failed"):
        list(client_of(served).chat.completions.create(model="direct", messages=ASKED, stream=True))


def test_a_team_without_an_answer_is_a_refusal() -> None:
    with serving(Direct(), scripted_model(Lines({"answerer": ["Paris"]}))) as served:
        [choice] = client_of(served).chat.completions.create(model="direct", messages=ASKED).choices
    assert choice.message.content is None and choice.message.refusal.startswith("no answer: invalid_answer")


def test_the_time_limit_is_an_exception() -> None:
    limits, refused = Limits(seconds=0.1), pytest.raises(openai.InternalServerError, match="time limit")
    with serving(Direct(), Gate().model(), limits=limits) as served, refused:
        client_of(served).chat.completions.create(model="direct", messages=ASKED)
