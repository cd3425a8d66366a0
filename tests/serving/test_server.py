"""A served team over a real socket: the contract of its endpoints, and its limits."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from serving_factories import Gate, OnePassage, chat, serving

from playing import Lines, good_lines, scripted_model
from searchparty.costs.prices import Price, Prices
from searchparty.errors import Failure, FailureKind
from searchparty.serving.service import Limits
from searchparty.teams.baselines import Direct, Rag
from searchparty.teams.chained import Chained
from searchparty.teams.planned import Planned

QUESTION = "What is the capital of France?"


def test_ask_gives_answer_evidence_tokens_price_and_ending() -> None:
    prices = Prices(dated="2026-01-01", source="test", search=0.5, models={"script": Price(input=1.0, output=1e6)})  # type: ignore[arg-type]
    with serving(Chained(), scripted_model(good_lines()), prices=prices) as client:
        reply = client.post("/ask", json={"question": QUESTION}).json()
    [attempt] = reply["attempts"]
    assert (reply["answer"], reply["team"], reply["seed"], attempt["stop_reason"]) == ("Paris", "chained", 0, "answered")
    [evidence] = attempt["evidence"]
    assert (evidence["id"], evidence["title"], evidence["text"]) == ("p1", "France", "Paris is the capital of France.")
    assert [used["role"] for used in attempt["tokens"]] == ["searcher", "answerer"]
    written = sum(used["output"] for used in attempt["tokens"])
    read = sum(used["uncached_input"] for used in attempt["tokens"])
    assert attempt["usd"] == pytest.approx(0.5 + written + read / 1e6)
    assert attempt["failure"] is None and attempt["searches"] == 1


def test_a_planned_team_tells_its_workflow() -> None:
    lines = Lines({"planner": ["<workflow>RA, AG</workflow>"], "ag": ["<answer>Paris</answer>"]})
    with serving(Planned(), scripted_model(lines)) as client:
        reply = client.post("/ask", json={"question": QUESTION}).json()
    [turn] = reply["attempts"][0]["workflow"]
    assert (turn["executors"], turn["broken_rule"], turn["answer"]) == (["RA", "AG"], None, "Paris")


def test_samples_are_attempts_and_choices() -> None:
    with serving(Direct(), scripted_model(lambda request: f"<answer>{request.seed}</answer>")) as client:
        reply = client.post("/ask", json={"question": QUESTION, "samples": 3}).json()
        choices = chat(client, n=3).json()["choices"]
    answers = [attempt["answer"] for attempt in reply["attempts"]]
    assert len(set(answers)) == 3
    assert [choice["message"]["content"] for choice in choices] == answers
    assert [choice["index"] for choice in choices] == [0, 1, 2]


def test_the_seed_of_a_question_decides_its_answer() -> None:
    with serving(Direct(), scripted_model(lambda request: f"<answer>{request.seed}</answer>")) as client:
        said = [client.post("/ask", json={"question": QUESTION, "seed": seed}).json()["answer"] for seed in (0, 1, 0)]
        other = client.post("/ask", json={"question": "What else?", "seed": 0}).json()["answer"]
    assert said[0] == said[2] != said[1]
    assert other != said[0]


def test_a_chat_completion_has_the_answer_alone_as_its_content() -> None:
    with serving(Chained(), scripted_model(good_lines())) as client:
        reply = chat(client, model="chained", temperature=0.3, max_tokens=5).json()
    [choice] = reply["choices"]
    assert (reply["object"], reply["model"], choice["finish_reason"]) == ("chat.completion", "chained", "stop")
    assert choice["message"] == {"role": "assistant", "content": "Paris", "refusal": None}
    usage = reply["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 0


def test_the_last_message_of_the_user_is_the_question() -> None:
    messages = [
        {"role": "user", "content": "What is the capital of Italy?"},
        {"role": "assistant", "content": "Rome"},
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        {"role": "assistant", "content": "Well,"},
    ]
    lines = good_lines()
    with serving(Direct(), scripted_model(lines)) as client:
        client.post("/v1/chat/completions", json={"messages": messages})
    assert QUESTION in lines.requests[0].messages[-1].content
    assert "Italy" not in str(lines.requests[0].messages)


def events(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_a_stream_tells_the_steps_and_ends_with_the_answer() -> None:
    with serving(Chained(), scripted_model(good_lines())) as client:
        response = chat(client, stream=True, stream_options={"include_usage": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    *chunks, usage = events(response)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    steps = "".join(delta.get("reasoning_content", "") for delta in deltas)
    assert "searcher.1: <search>capital of France</search>\nsearch “capital of France”: France\n" in steps
    assert [delta["content"] for delta in deltas if "content" in delta] == ["Paris"]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks][-1] == "stop"
    assert usage["choices"] == [] and usage["usage"]["completion_tokens"] > 0
    assert len({chunk["id"] for chunk in (*chunks, usage)}) == 1


def test_the_served_team_is_the_only_model() -> None:
    with serving(Direct(), scripted_model(good_lines())) as client:
        assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["direct"]
        assert client.get("/v1/models/direct").json()["id"] == "direct"
        refused = chat(client, model="gpt-4o-mini")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")


def test_a_team_that_comes_to_no_answer_says_why_and_guesses_nothing() -> None:
    with serving(Direct(), scripted_model(Lines({"answerer": ["Paris, I think"]}))) as client:
        asked, chatted = client.post("/ask", json={"question": QUESTION}), chat(client)
    attempt = asked.json()["attempts"][0]
    assert (asked.status_code, attempt["answer"], attempt["stop_reason"]) == (200, None, "invalid_answer")
    message = chatted.json()["choices"][0]["message"]
    assert (chatted.status_code, message["content"]) == (200, None)
    assert message["refusal"].startswith("no answer: invalid_answer")


@pytest.mark.parametrize(("kind", "status"), [(FailureKind.TIMEOUT, 504), (FailureKind.UNREACHABLE, 502)])
@pytest.mark.parametrize("source", ["model", "retriever"])
def test_a_failing_service_is_a_typed_outcome(source: str, kind: FailureKind, status: int) -> None:
    failure = Failure(source, kind, "out of order")
    model = scripted_model(Lines({"answerer": [failure]}) if source == "model" else good_lines())
    retriever = OnePassage(failure if source == "retriever" else None)
    with serving(Rag(), model, retriever=retriever) as client:
        asked, chatted, streamed = client.post("/ask", json={"question": QUESTION}), chat(client), chat(client, stream=True)
        metrics = client.get("/metrics").text
    attempt = asked.json()["attempts"][0]
    assert (asked.status_code, attempt["stop_reason"]) == (status, f"{source}_failed")
    assert attempt["failure"] == {"source": source, "kind": kind, "detail": "out of order", "attempts": 1}
    assert (chatted.status_code, chatted.json()["error"]["type"]) == (status, f"{source}_failed")
    assert events(streamed)[-1]["error"]["type"] == f"{source}_failed"
    assert f'searchparty_failures_total{{source="{source}",kind="{kind}"}} 3' in metrics


def test_questions_of_many_clients_are_with_the_model_at_once_and_never_more_than_may_play() -> None:
    gate = Gate()
    with serving(Direct(), gate.model(), limits=Limits(playing=3)) as client, ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(client.post, "/ask", json={"question": f"{n}?"}) for n in range(8)]
        assert gate.arrived.wait(5)
        while gate.waiting < 3:
            pass
        assert "searchparty_episodes_under_way" in client.get("/metrics").text
        gate.opened.set()
        assert [one.result().json()["answer"] for one in asked] == ["Paris"] * 8
    assert gate.most == 3


def test_more_than_is_taken_on_is_refused_with_a_time_to_come_back() -> None:
    gate = Gate()
    with serving(Direct(), gate.model(), limits=Limits(under_way=2)) as client, ThreadPoolExecutor(1) as pool:
        first = pool.submit(client.post, "/ask", json={"question": QUESTION, "samples": 2})
        assert gate.arrived.wait(5)
        refused = [client.post("/ask", json={"question": QUESTION}), chat(client, stream=True)]
        never = client.post("/ask", json={"question": QUESTION, "samples": 3})
        gate.opened.set()
        assert first.result().status_code == 200
        assert client.post("/ask", json={"question": QUESTION}).status_code == 200
    assert [(one.status_code, one.headers["retry-after"]) for one in refused] == [(503, "1")] * 2
    assert (never.status_code, never.json()["error"]["type"]) == (400, "bad_request")


def test_a_question_that_takes_too_long_is_given_up() -> None:
    gate = Gate()
    with serving(Direct(), gate.model(), limits=Limits(seconds=0.1)) as client:
        asked, streamed = client.post("/ask", json={"question": QUESTION}), chat(client, stream=True)
    assert (asked.status_code, asked.json()["error"]["type"]) == (504, "time_limit")
    assert events(streamed)[-1]["error"]["type"] == "time_limit"
    assert gate.cancelled == 2


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_goes_takes_its_question_along(stream: bool) -> None:
    gate = Gate()
    with serving(Direct(), gate.model(), limits=Limits(under_way=1)) as client:
        with pytest.raises(httpx.ReadTimeout), httpx.Client(base_url=client.base_url, trust_env=False, timeout=0.5) as hasty:
            chat(hasty, stream=stream)
        assert gate.given_up.wait(5)
        gate.opened.set()
        for _ in range(100):
            if (last := client.post("/ask", json={"question": QUESTION})).status_code == 200:
                break
        assert last.json()["answer"] == "Paris"
        assert 'searchparty_errors_total{kind="disconnected"} 1' in client.get("/metrics").text


def test_a_long_body_is_refused() -> None:
    with serving(Direct(), scripted_model(good_lines()), limits=Limits(body_bytes=1000)) as client:
        refused = client.post("/ask", json={"question": "x" * 1000})
    assert (refused.status_code, refused.json()["error"]["type"]) == (413, "too_large")


def test_only_health_is_told_without_the_token() -> None:
    with serving(Direct(), scripted_model(good_lines()), token="secret") as client:
        assert client.get("/health").json() == {"status": "ok", "team": "direct"}
        assert [client.get(path).status_code for path in ("/v1/models", "/metrics", "/ask")] == [401] * 3
        asked = client.post("/ask", json={"question": QUESTION}, headers={"Authorization": "Bearer secret"})
    assert asked.json()["answer"] == "Paris"


def test_metrics_count_questions_endings_tokens_and_refusals() -> None:
    with serving(Direct(), scripted_model(good_lines())) as client:
        client.post("/ask", json={"question": QUESTION})
        chat(client)
        client.post("/ask", json={})
        lines = client.get("/metrics").text.splitlines()
    for line in (
        'searchparty_questions_total{endpoint="/ask"} 1',
        'searchparty_questions_total{endpoint="/v1/chat/completions"} 1',
        'searchparty_episodes_total{stop_reason="answered"} 2',
        'searchparty_errors_total{kind="bad_request"} 1',
        "searchparty_question_seconds_count 2",
        "searchparty_episodes_under_way 0",
    ):
        assert line in lines
    assert any(line.startswith('searchparty_tokens_total{role="answerer",class="output"} ') for line in lines)


BAD_CHATS: list[Any] = [
    {}, {"messages": []}, {"messages": "x"}, {"messages": [1]}, {"messages": [{"role": "system", "content": "x"}]},
    {"messages": [{"role": "user", "content": " "}]}, {"messages": [{"role": "user", "content": 5}]},
    {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, {"stream": 1}, {"n": 0}, {"n": 65}, {"seed": -1},
    {"tools": [{}]}, {"logprobs": True}, {"response_format": {"type": "json_object"}}, {"stream_options": 3},
]  # fmt: skip


@pytest.mark.parametrize("change", BAD_CHATS)
def test_a_chat_that_is_not_as_it_must_be_is_refused_in_one_line(change: dict[str, Any]) -> None:
    good = {"messages": [{"role": "user", "content": QUESTION}]} if change else {}
    with serving(Direct(), scripted_model(good_lines())) as client:
        refused = client.post("/v1/chat/completions", json={**good, **change})
    message = refused.json()["error"]["message"]
    assert (refused.status_code, refused.json()["error"]["type"]) == (400, "bad_request")
    assert message and "\n" not in message


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"question": ""}', b'{"question": 5}', b'{"question": "x", "sample": 2}',
             b'{"question": "x", "samples": true}', b'{"question": "x", "seed": 1.5}', b"\xff"]
)  # fmt: skip
def test_a_native_question_that_is_not_as_it_must_be_is_refused_in_one_line(body: bytes) -> None:
    with serving(Direct(), scripted_model(good_lines())) as client:
        refused = client.post("/ask", content=body)
    assert (refused.status_code, refused.json()["error"]["type"]) == (400, "bad_request")


def test_other_paths_and_methods_are_refused() -> None:
    with serving(Direct(), scripted_model(good_lines())) as client:
        assert client.get("/nowhere").status_code == 404
        assert client.get("/ask").headers["allow"] == "POST"
        assert client.post("/v1/models").status_code == 405
