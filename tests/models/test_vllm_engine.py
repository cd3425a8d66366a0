import asyncio
import threading
import time
from collections.abc import Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import torch
from stub_vllm import Params, StubLLM

from searchparty.errors import Failure, FailureKind
from searchparty.models.bytes import ByteTokenizer
from searchparty.models.types import Completion, FinishReason, Generated, GenerateRequest, Sampling
from searchparty.models.vllm_engine import VllmEngine

PROMPT = list(b"Who was it?")
VERSION = "version"


def request(
    ids: Sequence[int] | None = PROMPT, *, seed: int = 0, n: int = 1, stop: Sequence[str] = (), **how: Any
) -> GenerateRequest:
    return GenerateRequest([], ids, Sampling(**{"max_tokens": 12, **how}), seed=seed, n=n, stop=stop)


@asynccontextmanager
async def engine(llm: StubLLM, **changes: Any) -> Any:
    arguments: dict[str, Any] = {"context_tokens": 64, "vocabulary": 256, **changes}
    running = VllmEngine(llm, Params, llm.put_weights, ByteTokenizer(), [ord("\n")], **arguments)
    try:
        yield running
    finally:
        await running.close()


async def candidates(running: VllmEngine, asked: GenerateRequest) -> list[Completion]:
    (reply,) = await running.generate([asked])
    assert isinstance(reply, Generated), reply
    return list(reply.candidates)


async def failure(running: VllmEngine, asked: GenerateRequest) -> Failure:
    (reply,) = await running.generate([asked])
    assert isinstance(reply, Failure)
    return reply


def ids(found: Sequence[Completion]) -> list[list[int]]:
    return [list(completion.ids or ()) for completion in found]


async def test_a_completion_has_as_many_log_probabilities_as_ids_and_their_text() -> None:
    async with engine(StubLLM(b"He said no.")) as running:
        (reply,) = await running.generate([request(max_tokens=7)])
    (completion,) = reply.candidates
    assert (completion.text, completion.ids, completion.finish_reason) == ("He said", list(b"He said"), FinishReason.LENGTH)
    assert completion.logprobs == [-place / 16 for place in range(1, 8)]
    assert (reply.prompt_tokens, reply.cached_tokens) == (len(PROMPT), 16)


async def test_candidates_differ_and_each_is_fixed_by_its_number_and_seed() -> None:
    async with engine(StubLLM()) as running:
        five = ids(await candidates(running, request(seed=3, n=5)))
        two = ids(await candidates(running, request(seed=3, n=2)))
        other = ids(await candidates(running, request(seed=4, n=2)))
    assert five[:2] == two and len({tuple(found) for found in five}) == 5
    assert two[0] != other[0]


async def test_requests_of_many_callers_are_sampled_together() -> None:
    llm = StubLLM()
    async with engine(llm) as running:
        alone = [ids(await candidates(running, request(seed=seed))) for seed in range(20)]
        assert llm.most_running == 1
        together = await asyncio.gather(*(candidates(running, request(seed=seed)) for seed in range(20)))
    assert llm.most_running > 10
    assert [ids(found) for found in together] == alone


async def test_the_end_token_is_the_last_id_and_not_in_the_text() -> None:
    async with engine(StubLLM(b"yes\nno")) as running:
        (found,) = await candidates(running, request())
    assert (found.text, found.ids, found.finish_reason) == ("yes", list(b"yes\n"), FinishReason.END)
    assert found.logprobs is not None and len(found.logprobs) == 4


async def test_a_stop_string_ends_the_completion_with_the_token_that_completes_it_and_vllm_is_told() -> None:
    llm = StubLLM(b"<a>x</a>more")
    async with engine(llm) as running:
        (found,) = await candidates(running, request(stop=["</b>", "</a>"]))
    assert (found.text, found.finish_reason) == ("<a>x</a>", FinishReason.STOP)
    assert found.ids == list(b"<a>x</a>") and found.logprobs is not None and len(found.logprobs) == 8
    assert llm.aborted == ["0"] and not llm.running


async def test_a_stop_string_inside_thinking_does_not_count() -> None:
    async with engine(StubLLM(b"<think></a></think></a>and more")) as running:
        (found,) = await candidates(running, request(stop=["</a>"], max_tokens=40))
    assert found.text == "<think></a></think></a>"


async def test_a_stop_string_completed_by_the_last_token_allowed_is_a_stop() -> None:
    async with engine(StubLLM(b"ab</a>")) as running:
        (found,) = await candidates(running, request(stop=["</a>"], max_tokens=6))
    assert found.finish_reason is FinishReason.STOP


@pytest.mark.parametrize("stop", ["é", "b ", "日本"])
async def test_a_stop_string_may_end_in_a_space_or_outside_ascii(stop: str) -> None:
    async with engine(StubLLM("ab é日本語".encode())) as running:
        (found,) = await candidates(running, request(stop=[stop], max_tokens=40))
    assert found.text.endswith(stop) and found.finish_reason is FinishReason.STOP


async def test_candidates_may_end_at_different_times() -> None:
    async with engine(StubLLM()) as running:
        free = await candidates(running, request(n=6, seed=1, max_tokens=30))
        stop = free[0].text[9]
        found = await candidates(running, request(n=6, seed=1, max_tokens=30, stop=[stop]))
    for before, after in zip(free, found, strict=True):
        assert after.text == before.text[: before.text.find(stop) + 1 or None]


async def test_greedy_requests_are_not_truncated_for_their_log_probabilities_are_those_of_temperature_1() -> None:
    llm = StubLLM()
    async with engine(llm) as running:
        await candidates(running, request(temperature=0.0, top_k=5, top_p=0.5))
        await candidates(running, request(temperature=0.7, top_k=5, top_p=0.5))
    assert [(params.temperature, params.top_k, params.top_p) for params in llm.asked] == [(0.0, 0, 1.0), (0.7, 5, 0.5)]


async def test_a_prompt_that_fills_the_window_overflows_and_a_completion_is_cut_at_its_end() -> None:
    async with engine(StubLLM(), context_tokens=14) as running:
        full = await failure(running, request([1] * 14))
        (tight,) = await candidates(running, request([1] * 11))
    assert full.kind is FailureKind.CONTEXT_OVERFLOW and "14" in full.detail
    assert (len(tight.ids or ()), tight.finish_reason) == (3, FinishReason.LENGTH)


@pytest.mark.parametrize("bad", [None, [], [1, 256], [-1]])
async def test_an_unusable_prompt_is_rejected_and_its_companions_are_unharmed(bad: list[int] | None) -> None:
    async with engine(StubLLM()) as running:
        rejected, good = await running.generate([request(bad), request()])
    assert isinstance(rejected, Failure) and rejected.kind is FailureKind.REJECTED
    assert isinstance(good, Generated)


async def test_what_vllm_refuses_is_rejected_with_its_reason() -> None:
    async with engine(StubLLM()) as running:
        refused = await failure(running, request(temperature=3.0, n=2))
        assert await candidates(running, request())
    assert refused == Failure("model", FailureKind.REJECTED, "ValueError: temperature must be in [0, 2]")


async def test_a_step_that_breaks_fails_what_is_running_and_the_engine_goes_on() -> None:
    llm = StubLLM()

    def break_once() -> None:
        llm.before_step = lambda: None
        raise RuntimeError("out of memory\nat line 3")

    async with engine(llm) as running:
        llm.before_step = break_once
        failed = await failure(running, request(n=2))
        llm.before_step = break_once
        (unscored,) = await running.score([PROMPT])
        assert await candidates(running, request())
    assert failed == unscored == Failure("model", FailureKind.SERVER_ERROR, "RuntimeError: out of memory at line 3")


async def test_cancelled_requests_leave_vllm() -> None:
    llm, started, go_on = StubLLM(), threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        go_on.wait(10)

    llm.before_step = hold
    async with engine(llm) as running:
        endless = asyncio.create_task(running.generate([request(n=3, max_tokens=50)]))
        await asyncio.to_thread(started.wait, 10)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        go_on.set()
        assert await candidates(running, request())
    assert len(llm.aborted) == 3


async def test_scores_are_one_per_token_and_nothing_precedes_the_first() -> None:
    async with engine(StubLLM()) as running:
        long, short, single, nothing = await running.score([PROMPT, [1, 2], [7], []])
    assert long == [-place / 16 for place in range(len(PROMPT))] and long[0] == 0.0
    assert (short, single, nothing) == ([0.0, -1 / 16], [0.0], [])


async def test_a_full_window_can_be_scored_and_a_longer_sequence_overflows() -> None:
    async with engine(StubLLM(), context_tokens=5) as running:
        full, longer, outside = await running.score([[1] * 5, [1] * 6, [256, 1]])
    assert isinstance(full, list) and len(full) == 5
    assert isinstance(longer, Failure) and longer.kind is FailureKind.CONTEXT_OVERFLOW
    assert isinstance(outside, Failure) and outside.kind is FailureKind.REJECTED


async def test_new_weights_are_for_requests_sent_afterwards_and_old_ones_for_those_sent_before() -> None:
    async with engine(StubLLM()) as running:
        before = await candidates(running, request())
        pending = asyncio.create_task(running.generate([request(n=3)]))
        await asyncio.sleep(0)
        refreshed = asyncio.create_task(running.refresh([(VERSION, torch.tensor(2.0))]))
        await asyncio.sleep(0)
        after = await candidates(running, request())
        await refreshed
        (old,) = await pending
    assert isinstance(old, Generated) and ids(old.candidates[:1]) == ids(before) != ids(after)
    assert after[0].logprobs == [-2 - place / 16 for place in range(1, 13)]


async def test_weights_that_vllm_does_not_take_are_the_callers_error_and_the_engine_goes_on() -> None:
    async with engine(StubLLM()) as running:
        with pytest.raises(KeyError, match="lm_head"):
            await running.refresh([("lm_head", torch.tensor(2.0))])
        assert await candidates(running, request())


async def test_a_cache_that_cannot_be_emptied_is_an_error() -> None:
    class Stubborn(StubLLM):
        def reset_prefix_cache(self) -> bool:
            super().reset_prefix_cache()
            return False

    async with engine(Stubborn()) as running:
        with pytest.raises(RuntimeError, match="prefix cache"):
            await running.refresh([(VERSION, torch.tensor(2.0))])


async def test_closing_ends_what_is_running_frees_the_model_once_and_may_be_done_twice() -> None:
    freed: list[str] = []
    async with engine(StubLLM(), context_tokens=10**9, free=lambda: freed.append("model")) as running:
        pending = asyncio.create_task(running.generate([request(n=2, max_tokens=10**8)]))
        await asyncio.sleep(0)
        await running.close()
        await running.close()
        (reply,) = await pending
        with pytest.raises(RuntimeError, match="closed"):
            await running.generate([request()])
    assert isinstance(reply, Failure) and reply.kind is FailureKind.UNREACHABLE
    assert freed == ["model"]


async def test_two_engines_in_one_process_take_turns() -> None:
    stepping: list[StubLLM] = []
    most = []

    def slowly(llm: StubLLM) -> None:
        stepping.append(llm)
        time.sleep(0.002)
        most.append(len(stepping))
        stepping.remove(llm)

    first, second = StubLLM(), StubLLM()
    for llm in (first, second):
        llm.before_step = partial(slowly, llm)
    async with engine(first) as one, engine(second) as other:
        await asyncio.gather(*(candidates(running, request(seed=seed)) for seed in range(3) for running in (one, other)))
    assert first.most_running and second.most_running
    assert set(most) == {1}
