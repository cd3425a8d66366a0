from collections.abc import Iterator
from typing import Any

import pytest
from stub_model_server import Answer, StubServer, serve, sleeping

from searchparty.errors import Failure, FailureKind, UserError
from searchparty.models import endpoint as endpoint_module
from searchparty.models.chatml import ChatMLChat
from searchparty.models.endpoint import Endpoint
from searchparty.models.loading import load_model
from searchparty.models.openai_engine import OpenAIEngine, ServerOffer, find_offer
from searchparty.models.types import Completion, FinishReason, Generated, GenerateRequest, Message, Sampling

CHAT = ChatMLChat()
END = CHAT.end_ids[0]
PROMPT = [1, 2, 3]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubServer]:
    monkeypatch.setattr(endpoint_module, "FIRST_PAUSE", 0.01)
    for name in endpoint_module.KEY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with serve() as stub:
        yield stub


def request(*, n: int = 1, stop: tuple[str, ...] = (), **sampling: Any) -> GenerateRequest:
    return GenerateRequest([Message("user", "hi")], PROMPT, Sampling(**sampling), seed=7, n=n, stop=stop)


def choice(text: str, *, ended: bool = True, index: int = 0, **changes: Any) -> dict[str, Any]:
    ids = [*text.encode(), END] if ended else list(text.encode())
    logprobs = {"token_logprobs": [-0.5] * len(ids)}
    whole = {"index": index, "token_ids": ids, "prompt_token_ids": PROMPT, "logprobs": logprobs, "finish_reason": "stop"}
    return {**whole, "stop_reason": None, **changes}


async def ask(server: StubServer, asked: GenerateRequest, *, tokens: bool = True, **options: Any) -> Generated | Failure:
    offer = ServerOffer("tiny", 200, tokens, options.pop("processed", False))
    engine = OpenAIEngine(Endpoint(server.url, **{"timeout": 60.0, **options}), offer, CHAT if tokens else None)
    try:
        (reply,) = await engine.generate([asked])
    finally:
        await engine.close()
    return reply


def answers(*replies: Answer) -> Any:
    """Give the replies one after the other, then the last for ever."""
    left = list(replies)
    return lambda path, body: left.pop(0) if len(left) > 1 else left[0]


async def test_ids_go_in_and_the_sampled_ids_come_out(server: StubServer) -> None:
    server.respond = answers((200, {"choices": [choice("b", index=1), choice("ab")]}))
    reply = await ask(server, request(n=2, stop=("</a>",), max_tokens=50))
    first = Completion("ab", [97, 98, END], [-0.5] * 3, FinishReason.END)
    assert reply == Generated(
        [first, Completion("b", [98, END], [-0.5] * 2, FinishReason.END)], prompt_tokens=3, output_tokens=5
    )
    (sent,) = server.requests
    expected = {
        "prompt": PROMPT,
        "return_token_ids": True,
        "logprobs": 0,
        "n": 2,
        "seed": 7,
        "stop": ["</a>"],
        "max_tokens": 50,
    }
    assert expected.items() <= sent.items()
    assert sent["include_stop_str_in_output"] is True and sent["skip_special_tokens"] is False and "messages" not in sent


async def test_stop_strings_and_limits_are_told_apart(server: StubServer) -> None:
    stopped = choice("x</a>", ended=False, stop_reason="</a>")
    cut = choice("long", ended=False, finish_reason="length", index=1)
    server.respond = answers((200, {"choices": [stopped, cut]}))
    reply = await ask(server, request(n=2, stop=("</a>",)))
    assert isinstance(reply, Generated)
    assert [c.finish_reason for c in reply.candidates] == [FinishReason.STOP, FinishReason.LENGTH]
    assert [c.text for c in reply.candidates] == ["x</a>", "long"]


async def test_an_empty_completion_is_legal(server: StubServer) -> None:
    server.respond = answers((200, {"choices": [choice("")]}))
    reply = await ask(server, request())
    assert isinstance(reply, Generated) and reply.candidates[0] == Completion("", [END], [-0.5], FinishReason.END)


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"choices": []},
        {"choices": "x"},
        {"choices": [choice("a", token_ids=None)]},
        {"choices": [choice("a", token_ids=["a"])]},
        {"choices": [choice("a", prompt_token_ids=[1, 2])]},
        {"choices": [choice("a", prompt_token_ids=None)]},
        {"choices": [choice("a", logprobs=None)]},
        {"choices": [choice("a", logprobs={"token_logprobs": [-0.5]})]},
        {"choices": [choice("a", logprobs={"token_logprobs": [None, -0.5]})]},
        {"choices": [choice("a", ended=False)]},
        {"choices": [choice("a", finish_reason="abort")]},
        {"choices": [choice("a" * 600)]},
        b"<html>",
        b"[1]",
        b"\xff",
    ],
)
async def test_a_malformed_reply_is_a_failure_and_not_asked_for_again(server: StubServer, wrong: Any) -> None:
    server.respond = answers((200, wrong))
    reply = await ask(server, request())
    assert isinstance(reply, Failure) and reply.kind is FailureKind.MALFORMED_REPLY and reply.source == "model"
    assert len(server.requests) == 1


async def test_log_probabilities_of_another_distribution_are_left_out(server: StubServer) -> None:
    server.respond = answers((200, {"choices": [choice("a")]}))
    raw = await ask(server, request(temperature=0.7))
    processed = await ask(server, request(temperature=0.7), processed=True)
    greedy = await ask(server, request(temperature=0.0))
    assert isinstance(raw, Generated) and isinstance(processed, Generated) and isinstance(greedy, Generated)
    assert raw.candidates[0].logprobs is None
    assert processed.candidates[0].logprobs == greedy.candidates[0].logprobs == [-0.5, -0.5]


@pytest.mark.parametrize("tokens", [True, False])
async def test_a_server_that_ignores_n_is_asked_again_with_other_seeds(server: StubServer, tokens: bool) -> None:
    server.respond = answers((200, {"choices": [{**choice("a"), "message": {"content": "a"}}]}))
    reply = await ask(server, request(n=3), tokens=tokens)
    assert isinstance(reply, Generated) and len(reply.candidates) == 3
    assert [sent["n"] for sent in server.requests] == [3, 2, 1]
    assert len({sent["seed"] for sent in server.requests}) == 3


@pytest.mark.parametrize("tokens", [True, False])
async def test_greedy_candidates_are_sampled_once(server: StubServer, tokens: bool) -> None:
    once = {"choices": [{**choice("a"), "message": {"content": "a"}}], "usage": {"completion_tokens": 2}}
    server.respond = lambda path, body: (
        (200, once) if body["n"] == 1 else (400, {"error": "n must be 1 when using greedy sampling"})
    )
    reply = await ask(server, request(n=3, temperature=0.0), tokens=tokens)
    assert isinstance(reply, Generated) and [candidate.text for candidate in reply.candidates] == ["a"] * 3
    assert reply.output_tokens == 6 and len(server.requests) == 1


async def test_the_chat_route_sends_messages_and_cuts_at_the_stop_string_itself(server: StubServer) -> None:
    message = {"message": {"role": "assistant", "content": "<a>x</a> and more"}, "finish_reason": "stop"}
    server.respond = answers((200, {"choices": [message], "usage": {"prompt_tokens": 9}}))
    reply = await ask(server, request(stop=("</a>",)), tokens=False)
    assert reply == Generated([Completion("<a>x</a>", None, None, FinishReason.STOP)], prompt_tokens=9)
    (sent,) = server.requests
    assert sent["messages"] == [{"role": "user", "content": "hi"}]
    assert "stop" not in sent and "prompt" not in sent


async def test_a_chat_answer_without_content_is_an_empty_completion(server: StubServer) -> None:
    server.respond = answers((200, {"choices": [{"message": {"content": None}, "finish_reason": "stop"}]}))
    reply = await ask(server, request(), tokens=False)
    assert reply == Generated([Completion("", None, None, FinishReason.END)])


@pytest.mark.parametrize(
    ("status", "kind"), [(500, FailureKind.SERVER_ERROR), (503, FailureKind.SERVER_ERROR), (429, FailureKind.RATE_LIMITED)]
)
async def test_a_busy_server_is_asked_again_a_bounded_number_of_times(
    server: StubServer, status: int, kind: FailureKind
) -> None:
    server.respond = answers((status, {"error": "busy"}), (200, {"choices": [choice("a")]}))
    assert isinstance(await ask(server, request()), Generated)
    server.respond = answers((status, {"error": "busy"}))
    reply = await ask(server, request(), attempts=3)
    assert isinstance(reply, Failure) and (reply.kind, reply.attempts) == (kind, 3) and str(status) in reply.detail
    assert len(server.requests) == 2 + 3


async def test_the_server_says_how_long_to_wait_and_the_deadline_still_holds(server: StubServer) -> None:
    server.respond = answers((429, {}, {"retry-after": "3600"}))
    reply = await ask(server, request(), timeout=0.2)
    assert isinstance(reply, Failure) and (reply.kind, reply.attempts) == (FailureKind.RATE_LIMITED, 1)


@pytest.mark.parametrize("status", [400, 401, 404, 302])
async def test_a_rejected_request_is_not_sent_again(server: StubServer, status: int) -> None:
    server.respond = answers((status, {"error": "no"}))
    reply = await ask(server, request())
    assert isinstance(reply, Failure) and (reply.kind, reply.attempts) == (FailureKind.REJECTED, 1)
    assert len(server.requests) == 1


async def test_a_server_that_finds_the_prompt_too_long_is_a_context_overflow(server: StubServer) -> None:
    server.respond = answers((400, {"error": "This model's maximum context length is 20 tokens"}))
    reply = await ask(server, request(), tokens=False)
    assert isinstance(reply, Failure) and reply.kind is FailureKind.CONTEXT_OVERFLOW


async def test_a_prompt_that_is_too_long_is_not_sent_and_the_budget_is_cut_to_the_window(server: StubServer) -> None:
    long = GenerateRequest([], [1] * 200, Sampling(), seed=0)
    reply = await ask(server, long)
    assert isinstance(reply, Failure) and reply.kind is FailureKind.CONTEXT_OVERFLOW and not server.requests
    server.respond = answers((200, {"choices": [choice("a")]}))
    await ask(server, request(max_tokens=5000))
    assert server.requests[0]["max_tokens"] == 197


async def test_a_slow_server_is_a_timeout(server: StubServer) -> None:
    server.respond = sleeping(0.5)
    reply = await ask(server, request(), timeout=0.1)
    assert isinstance(reply, Failure) and reply.kind is FailureKind.TIMEOUT


async def test_an_endless_reply_is_given_up(server: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint_module, "LARGEST_REPLY", 1000)
    server.respond = answers((200, b"x" * 100_000))
    reply = await ask(server, request())
    assert isinstance(reply, Failure) and reply.kind is FailureKind.MALFORMED_REPLY and "1000 bytes" in reply.detail


async def test_nobody_listening_is_unreachable() -> None:
    with serve() as stub:
        url = stub.url
    engine = OpenAIEngine(Endpoint(url, timeout=60, attempts=1), ServerOffer("tiny"), None)
    (reply,) = await engine.generate([request()])
    assert isinstance(reply, Failure) and reply.kind is FailureKind.UNREACHABLE


async def test_the_key_is_sent_but_never_said(server: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEARCHPARTY_API_KEY", "sk-very-secret")
    server.respond = answers((401, {"error": "bad key sk-very-secret"}))
    reply = await ask(server, request())
    assert (
        server.headers[0]["authorization" if "authorization" in server.headers[0] else "Authorization"]
        == "Bearer sk-very-secret"
    )
    assert isinstance(reply, Failure) and "sk-very-secret" not in repr(reply) and "***" in reply.detail


def test_a_key_in_the_address_is_refused_without_printing_it() -> None:
    with pytest.raises(UserError) as caught:
        Endpoint("http://user:secret@host/v1")
    assert "secret" not in str(caught.value)


async def test_scores_are_read_from_the_prompt_log_probabilities(server: StubServer) -> None:
    entries = [None, {"2": {"logprob": -1.5, "rank": 3}, "9": {"logprob": -0.1, "rank": 1}}, {"3": {"logprob": -0.25}}]
    server.respond = answers(
        (200, {"choices": [{"prompt_logprobs": entries}]}), (200, {"choices": [{"prompt_logprobs": entries[:2]}]})
    )
    engine = OpenAIEngine(Endpoint(server.url), ServerOffer("tiny", 200, True), CHAT)
    assert await engine.score([PROMPT]) == [[0.0, -1.5, -0.25]]
    wrong, single = await engine.score([PROMPT, [5]])
    await engine.close()
    assert isinstance(wrong, Failure) and wrong.kind is FailureKind.MALFORMED_REPLY
    assert single == [0.0]


async def test_a_sequence_that_leaves_no_place_in_the_window_is_not_scored(server: StubServer) -> None:
    server.respond = answers((200, {"choices": [{"prompt_logprobs": [None, *[{"1": {"logprob": -1.0}}] * 198]}]}))
    engine = OpenAIEngine(Endpoint(server.url), ServerOffer("tiny", 200, True), CHAT)
    full, fits = await engine.score([[1] * 200, [1] * 199])
    await engine.close()
    assert isinstance(full, Failure) and full.kind is FailureKind.CONTEXT_OVERFLOW and "200 tokens" in full.detail
    assert fits == [0.0, *[-1.0] * 198] and len(server.requests) == 1


async def test_a_chat_server_cannot_score(server: StubServer) -> None:
    with pytest.raises(UserError, match="cannot score"):
        await OpenAIEngine(Endpoint(server.url), ServerOffer("tiny"), None).score([[1, 2]])


def probe(path: str, body: dict[str, Any]) -> Answer:
    return 200, {"choices": [{"token_ids": [5], "prompt_token_ids": body["prompt"], "logprobs": {"token_logprobs": [0.0]}}]}


def test_what_a_server_offers_is_found_out(server: StubServer) -> None:
    assert find_offer(Endpoint(server.url), None, None) == ServerOffer("tiny", 200)
    server.respond = probe
    assert find_offer(Endpoint(server.url), None, CHAT) == ServerOffer("tiny", 200, token_ids=True, processed_logprobs=True)
    server.respond = lambda path, body: (404, {})
    assert find_offer(Endpoint(server.url), None, CHAT) == ServerOffer("tiny", 200)
    server.respond = lambda path, body: (200, {"choices": [{"text": "x"}]})
    assert find_offer(Endpoint(server.url), None, CHAT) == ServerOffer("tiny", 200)
    server.respond = lambda path, body: (500, {})
    assert find_offer(Endpoint(server.url), None, CHAT) == ServerOffer("tiny", 200, token_ids=True)


def test_one_of_several_served_models_must_be_named(server: StubServer) -> None:
    server.models = [{"id": "a"}, {"id": "b", "max_model_len": 10}]
    assert find_offer(Endpoint(server.url), "b", None) == ServerOffer("b", 10)
    with pytest.raises(UserError, match="the server has a, b; name one"):
        find_offer(Endpoint(server.url), None, None)
    with pytest.raises(UserError, match="no such model, only a, b"):
        find_offer(Endpoint(server.url), "c", None)


async def test_a_server_that_was_down_at_first_is_asked_what_it_offers_at_the_first_request(server: StubServer) -> None:
    engine = OpenAIEngine(Endpoint(server.url), ServerOffer("default", known=False), None)
    server.models = [{"id": "real", "max_model_len": 200}]
    said = {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": {"completion_tokens": 4}}
    server.respond = answers((200, said))
    (reply,) = await engine.generate([request()])
    assert isinstance(reply, Generated) and reply.output_tokens == 4
    assert server.requests[-1]["model"] == "real"


def test_a_model_behind_a_server_that_does_not_answer_has_no_known_identity() -> None:
    assert not load_model("http://127.0.0.1:9/v1#m").identity_known


async def test_a_key_that_a_reply_repeats_across_the_cut_leaves_no_beginning(
    server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCHPARTY_API_KEY", "s3cret-key")
    for padding in (0, 290, 296):
        server.respond = answers((401, "x" * padding + "s3cret-key"))
        reply = await ask(server, request())
        assert isinstance(reply, Failure) and "s3" not in reply.detail
