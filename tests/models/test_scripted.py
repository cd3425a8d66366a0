from searchparty.errors import Failure, FailureKind
from searchparty.models.bytes import CONTROL_TOKENS, ByteTokenizer
from searchparty.models.scripted import Script, ScriptedEngine
from searchparty.models.types import Completion, FinishReason, Generated, GenerateRequest, Message, Sampling

END = CONTROL_TOKENS["<|im_end|>"]


def request(text: str = "hello", *, n: int = 1, max_tokens: int = 64, stop: tuple[str, ...] = ()) -> GenerateRequest:
    ids = ByteTokenizer().encode(text)
    return GenerateRequest([Message("user", text)], ids, Sampling(max_tokens=max_tokens), seed=0, n=n, stop=stop)


async def completion(script: Script, asked: GenerateRequest) -> Completion:
    (reply,) = await ScriptedEngine(script).generate([asked])
    assert isinstance(reply, Generated)
    return reply.candidates[0]


async def test_the_script_reads_the_messages_and_its_words_end_with_the_end_of_turn_token() -> None:
    got = await completion(lambda asked: asked.messages[-1].content.upper(), request("hello"))
    assert got == Completion("HELLO", [*b"HELLO", END], [0.0] * 6, FinishReason.END)


async def test_an_empty_completion_is_legal() -> None:
    got = await completion(lambda _: "", request())
    assert (got.text, got.ids, got.finish_reason) == ("", [END], FinishReason.END)


async def test_a_stop_string_ends_the_completion_and_belongs_to_it() -> None:
    got = await completion(lambda _: "<search>x</search> and more", request(stop=("</search>",)))
    assert (got.text, got.ids, got.finish_reason) == ("<search>x</search>", list(b"<search>x</search>"), FinishReason.STOP)


async def test_the_stop_string_completed_first_wins() -> None:
    got = await completion(lambda _: "abcd", request(stop=("bcd", "ab", "")))
    assert got.text == "ab"


async def test_max_tokens_cuts_and_counts_the_end_of_turn_token() -> None:
    got = await completion(lambda _: "four", request(max_tokens=4))
    assert (got.text, got.ids, got.finish_reason) == ("four", list(b"four"), FinishReason.LENGTH)


async def test_candidates_are_equal_for_one_text_and_separate_for_several() -> None:
    engine = ScriptedEngine(lambda asked: ["a", "b"] if asked.n == 2 else "c")
    replies = await engine.generate([request(n=2), request(n=3)])
    texts = [[c.text for c in reply.candidates] for reply in replies if isinstance(reply, Generated)]
    assert texts == [["a", "b"], ["c", "c", "c"]]


async def test_a_wrong_number_of_texts_is_a_malformed_reply() -> None:
    (reply,) = await ScriptedEngine(lambda _: ["a"]).generate([request(n=2)])
    assert isinstance(reply, Failure) and reply.kind is FailureKind.MALFORMED_REPLY


async def test_a_failing_script_fails_its_request_alone() -> None:
    def script(asked: GenerateRequest) -> str:
        return {"good": "fine"}[asked.messages[-1].content]

    bad, good = await ScriptedEngine(script).generate([request("bad"), request("good")])
    assert isinstance(bad, Failure) and bad.kind is FailureKind.SERVER_ERROR and "KeyError" in bad.detail
    assert isinstance(good, Generated)


async def test_a_scripted_failure_is_passed_on() -> None:
    failure = Failure("model", FailureKind.TIMEOUT, "no reply in 3 s")
    assert await ScriptedEngine(lambda _: failure).generate([request()]) == [failure]


async def test_a_prompt_that_fills_the_window_overflows_and_a_shorter_one_is_cut_at_it() -> None:
    engine = ScriptedEngine(lambda _: "long words", context_tokens=8)
    full, tight = await engine.generate([request("12345678"), request("123456")])
    assert isinstance(full, Failure) and full.kind is FailureKind.CONTEXT_OVERFLOW
    assert isinstance(tight, Generated)
    assert (tight.candidates[0].text, tight.candidates[0].finish_reason) == ("lo", FinishReason.LENGTH)


async def test_a_text_only_engine_gives_no_ids() -> None:
    engine = ScriptedEngine(lambda _: "x", exchanges_ids=False)
    (reply,) = await engine.generate([request()])
    assert isinstance(reply, Generated) and not engine.exchanges_ids
    assert reply.candidates[0].ids is None and reply.candidates[0].logprobs is None


async def test_scores_have_the_length_of_their_sequences() -> None:
    assert await ScriptedEngine(lambda _: "").score([[1, 2], []]) == [[0.0, 0.0], []]
