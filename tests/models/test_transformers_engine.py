import asyncio
import functools
import random
from collections.abc import Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import torch
from tiny_models import random_model

from searchparty.errors import Failure, FailureKind, UserError
from searchparty.models.batch import BatchLimits
from searchparty.models.bytes import ByteTokenizer
from searchparty.models.transformers_engine import TransformersEngine
from searchparty.models.types import Completion, FinishReason, Generated, GenerateRequest, Sampling

END = 258
NO_CACHE = BatchLimits(cache_tokens=0)


def prompt(length: int, seed: int) -> list[int]:
    generator = random.Random(seed)
    return [generator.randrange(256) for _ in range(length)]


def request(
    ids: Sequence[int] | None, *, seed: int = 0, n: int = 1, stop: tuple[str, ...] = (), **sampling: Any
) -> GenerateRequest:
    return GenerateRequest([], ids, Sampling(**{"max_tokens": 12, **sampling}), seed=seed, n=n, stop=stop)


@asynccontextmanager
async def engine(model: Any = None, limits: BatchLimits | None = None, **changes: Any) -> Any:
    model = random_model() if model is None else model
    arguments = {"end_ids": [END], "context_tokens": 512, "limits": limits, **changes}
    running = TransformersEngine(model, ByteTokenizer259(), **arguments)
    try:
        yield running
    finally:
        await running.close()


class ByteTokenizer259(ByteTokenizer):
    """The random models have a few more ids than the byte tokenizer; those print as nothing."""

    def decode(self, ids: Sequence[int]) -> str:
        return super().decode([i for i in ids if i <= END])


async def one(running: TransformersEngine, asked: GenerateRequest) -> list[Completion]:
    (reply,) = await running.generate([asked])
    assert isinstance(reply, Generated), reply
    return list(reply.candidates)


def crowd() -> list[GenerateRequest]:
    """Requests of every kind: short and long prompts, several candidates, temperatures, limits."""
    return [
        request(prompt(3 + 17 * place, place), seed=place, n=1 + place % 3, max_tokens=4 + place, **how)
        for place, how in enumerate(
            [
                {},
                {"temperature": 0.0},
                {"temperature": 0.7},
                {"top_p": 0.8},
                {"top_k": 5},
                {"temperature": 1.3, "top_k": 20},
                {},
                {},
            ]
        )
    ]


def ids(candidates: Sequence[Completion]) -> list[list[int]]:
    return [list(candidate.ids or ()) for candidate in candidates]


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
async def test_a_request_gives_the_same_tokens_alone_and_in_any_batch(kind: str) -> None:
    model = random_model(kind)
    alone = []
    for asked in crowd():
        async with engine(model, NO_CACHE) as running:
            alone.append(await one(running, asked))
    async with engine(model) as running:
        together = await running.generate(crowd())
        again = await running.generate(list(reversed(crowd())))
    async with engine(model, BatchLimits(batch_tokens=256, prefill_tokens=64, cache_tokens=128)) as running:
        cramped = await running.generate(crowd())
    for expected, *others in zip(alone, together, reversed(again), cramped, strict=True):
        for reply in others:
            assert isinstance(reply, Generated)
            assert ids(reply.candidates) == ids(expected)
            for left, right in zip(reply.candidates, expected, strict=True):
                assert left.logprobs == pytest.approx(right.logprobs, abs=1e-4)
                assert (left.text, left.finish_reason) == (right.text, right.finish_reason)


async def test_requests_may_join_a_running_batch_at_any_time() -> None:
    model = random_model()
    async with engine(model) as running:
        expected = [await one(running, asked) for asked in crowd()]

    async def late(running: TransformersEngine, asked: GenerateRequest, delay: float) -> list[Completion]:
        await asyncio.sleep(delay)
        return await one(running, asked)

    async with engine(model) as running:
        got = await asyncio.gather(*(late(running, asked, 0.004 * place) for place, asked in enumerate(crowd())))
    assert [ids(candidates) for candidates in got] == [ids(candidates) for candidates in expected]


async def test_greedy_tokens_are_those_of_the_library() -> None:
    model, start = random_model(), prompt(40, 1)
    expected = model.generate(torch.tensor([start]), max_new_tokens=20, do_sample=False, eos_token_id=END, pad_token_id=0)[
        0, 40:
    ]
    async with engine(model) as running:
        (got,) = await one(running, request(start, temperature=0.0, max_tokens=20))
    assert got.ids == expected.tolist()


async def test_candidates_differ_and_each_is_fixed_by_its_number() -> None:
    async with engine() as running:
        five = ids(await one(running, request(prompt(9, 1), n=5, seed=3)))
        two = ids(await one(running, request(prompt(9, 1), n=2, seed=3)))
        other = ids(await one(running, request(prompt(9, 1), n=2, seed=4)))
    assert five[:2] == two and len({tuple(candidate) for candidate in five}) > 1
    assert two != other


async def test_tokens_are_drawn_with_their_probabilities() -> None:
    model, start = random_model(initializer_range=0.15), prompt(5, 2)
    with torch.inference_mode():
        expected = model(torch.tensor([start])).logits[0, -1].softmax(-1)
    async with engine(model) as running:
        drawn = await one(running, request(start, n=4000, max_tokens=1))
    counts = torch.bincount(torch.tensor([candidate.ids[0] for candidate in drawn if candidate.ids]), minlength=320) / 4000
    likely = expected > 0.01
    assert likely.sum() >= 10
    assert torch.all((counts - expected)[likely].abs() < 4 * (expected[likely] / 4000).sqrt() + 1e-3)


@pytest.mark.parametrize(
    "how", [{"top_k": 3}, {"top_p": 0.5}, {"temperature": 0.5}, {"temperature": 0.8, "top_k": 10, "top_p": 0.9}]
)
async def test_log_probabilities_are_those_of_the_distribution_drawn_from(how: dict[str, Any]) -> None:
    model, start = random_model(), prompt(8, 5)
    sampling = Sampling(**how)
    async with engine(model) as running:
        drawn = await one(running, request(start, n=64, max_tokens=1, **how))
    with torch.inference_mode():
        logits = model(torch.tensor([start])).logits[0, -1].double() / sampling.temperature
    probabilities, order = logits.softmax(-1).sort(descending=True)
    keep = sampling.top_k or len(order)
    probabilities, order = probabilities[:keep] / probabilities[:keep].sum(), order[:keep]
    inside = probabilities.cumsum(0) - probabilities < sampling.top_p
    probabilities, order = probabilities[inside] / probabilities[inside].sum(), order[inside]
    expected = dict(zip(order.tolist(), probabilities.log().tolist(), strict=True))
    for candidate in drawn:
        assert candidate.ids is not None and candidate.logprobs is not None
        assert candidate.logprobs[0] == pytest.approx(expected[candidate.ids[0]], abs=1e-4)


@pytest.mark.parametrize("limits", [None, BatchLimits(prefill_tokens=64)])
async def test_scores_are_the_log_probabilities_of_generation(limits: BatchLimits | None) -> None:
    async with engine(limits=limits) as running:
        asked = [request(prompt(30 * place + 2, place), seed=place, max_tokens=40) for place in range(6)]
        replies = await running.generate(asked)
        candidates = [reply.candidates[0] for reply in replies if isinstance(reply, Generated)]
        whole = [[*(a.prompt_ids or ()), *(c.ids or ())] for a, c in zip(asked, candidates, strict=True)]
        scores = await running.score([*whole, [7], []])
    assert scores[-2:] == [[0.0], []]
    for start, candidate, sequence, score in zip(asked, candidates, whole, scores, strict=False):
        assert isinstance(score, list) and len(score) == len(sequence) and score[0] == 0.0
        assert score[len(start.prompt_ids or ()) :] == pytest.approx(candidate.logprobs, abs=1e-4)


async def test_scores_are_those_of_a_plain_forward_pass() -> None:
    model, sequence = random_model("qwen2"), prompt(50, 3)
    with torch.inference_mode():
        logprobs = model(torch.tensor([sequence])).logits[0].log_softmax(-1)
    expected = [0.0, *(float(logprobs[place, token]) for place, token in enumerate(sequence[1:]))]
    async with engine(model) as running:
        (scores,) = await running.score([sequence])
    assert scores == pytest.approx(expected, abs=1e-4)


async def test_the_next_turn_of_an_agent_reuses_what_was_read_and_sampled() -> None:
    model, first = random_model(), request(prompt(100, 1), max_tokens=40)
    async with engine(model) as running:
        (turn,) = await one(running, first)
        longer = request([*(first.prompt_ids or ()), *(turn.ids or ()), *prompt(20, 2)], seed=9)
        (reply,) = await running.generate([longer])
    async with engine(model, NO_CACHE) as running:
        (cold,) = await running.generate([longer])
    assert isinstance(reply, Generated) and isinstance(cold, Generated)
    assert cold.cached_tokens == 0
    assert reply.cached_tokens == (100 + len(turn.ids or ()) - 1) // 32 * 32
    assert ids(reply.candidates) == ids(cold.candidates)


async def test_prompts_that_arrive_together_read_their_common_start_once() -> None:
    common = prompt(128, 1)
    async with engine() as running:
        replies = await running.generate([request(common + prompt(10, place)) for place in range(2, 6)])
    assert sorted(reply.cached_tokens or 0 for reply in replies if isinstance(reply, Generated)) == [0, 128, 128, 128]


async def test_the_end_token_is_the_last_id_and_not_in_the_text() -> None:
    always_end = random_model()
    with torch.no_grad():
        always_end.lm_head.weight.zero_()
        always_end.model.norm.weight.zero_()
        always_end.lm_head = torch.nn.Linear(32, 320)
        always_end.lm_head.weight.zero_()
        always_end.lm_head.bias.zero_()
        always_end.lm_head.bias[END] = 100.0
    async with engine(always_end) as running:
        (got,) = await one(running, request(prompt(4, 1)))
    assert (got.text, got.ids, got.finish_reason) == ("", [END], FinishReason.END)
    assert got.logprobs == pytest.approx([0.0], abs=1e-5)


async def test_a_stop_string_ends_the_completion_with_the_token_that_completes_it() -> None:
    async with engine() as running:
        (free,) = await one(running, request(prompt(6, 1), max_tokens=60))
        stop = next(free.text[at : at + 2] for at in range(5, 50) if free.text[at : at + 2].isprintable())
        (stopped,) = await one(running, request(prompt(6, 1), max_tokens=60, stop=("never\0seen", stop)))
    assert stopped.finish_reason is FinishReason.STOP
    assert stopped.ids == list(free.ids or ())[: len(stopped.ids or ())]
    assert stopped.text == free.text[: free.text.index(stop) + len(stop)]


async def test_a_prompt_that_fills_the_window_overflows_and_a_completion_is_cut_at_its_end() -> None:
    async with engine(context_tokens=50) as running:
        full, tight = await running.generate([request(prompt(50, 1)), request(prompt(47, 1), temperature=0.0)])
    assert isinstance(full, Failure) and full.kind is FailureKind.CONTEXT_OVERFLOW and "50" in full.detail
    assert isinstance(tight, Generated)
    assert (len(tight.candidates[0].ids or ()), tight.candidates[0].finish_reason) == (3, FinishReason.LENGTH)


@pytest.mark.parametrize("bad", [None, [], [1, 99999], [-1]])
async def test_an_unusable_prompt_is_rejected_and_its_companions_are_unharmed(bad: list[int] | None) -> None:
    async with engine() as running:
        rejected, good = await running.generate([request(bad), request(prompt(5, 1))])
    assert isinstance(rejected, Failure) and rejected.kind is FailureKind.REJECTED
    assert isinstance(good, Generated)


async def test_an_exception_in_the_model_is_a_recorded_failure_and_the_engine_goes_on() -> None:
    model, broken = random_model(), True
    forward = model.forward

    @functools.wraps(forward)
    def sometimes(*args: Any, **kwargs: Any) -> Any:
        if broken:
            raise RuntimeError("out of memory\nat line 3")
        return forward(*args, **kwargs)

    model.forward = sometimes
    async with engine(model) as running:
        (failed,) = await running.generate([request(prompt(5, 1))])
        (unscored,) = await running.score([prompt(5, 1)])
        broken = False
        (good,) = await running.generate([request(prompt(5, 1))])
    expected = Failure("model", FailureKind.SERVER_ERROR, "RuntimeError: out of memory at line 3")
    assert failed == unscored == expected
    assert isinstance(good, Generated)


async def test_a_cancelled_request_leaves_the_batch_and_the_others_finish() -> None:
    async with engine() as running:
        endless = asyncio.create_task(running.generate([request(prompt(5, 1), max_tokens=500, n=8)]))
        await asyncio.sleep(0.02)
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        assert ids(await one(running, request(prompt(5, 2))))


async def test_closing_ends_what_is_running_and_may_be_done_twice() -> None:
    async with engine() as running:
        pending = asyncio.create_task(running.generate([request(prompt(5, 1), max_tokens=500, n=8)]))
        await asyncio.sleep(0.02)
        await running.close()
        await running.close()
        (reply,) = await pending
    assert isinstance(reply, Failure | Generated)


def test_a_model_with_sliding_windows_is_refused() -> None:
    model = random_model("qwen2", use_sliding_window=True, sliding_window=8, max_window_layers=0)
    with pytest.raises(UserError, match="sliding_attention"):
        TransformersEngine(model, ByteTokenizer(), [END], context_tokens=512)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
