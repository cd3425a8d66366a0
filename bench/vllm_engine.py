"""The in-process vLLM engine beside vLLM's own `LLM.generate` and beside transformers: tokens per second, and equality.

    python bench/vllm_engine.py [--model smollm2] [--requests 1024] [--prompt 250] [--new 96] [--checks | --rates]

Rates: every request is one completion of exactly `--new` tokens after a random prompt, with a seed of its own and with the
log-probabilities of its tokens; all are sent at once. Checks: the same requests sent 1, 32 and all at a time; log-probabilities
beside those of the same tokens in transformers, before and after new weights are put into vLLM; stop strings; candidates.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any

import torch
import vllm
from rich.console import Console

from searchparty.models.huggingface import load_chat, load_weights
from searchparty.models.loading import model_folder
from searchparty.models.transformers_engine import TransformersEngine
from searchparty.models.types import Completion, Generated, GenerateRequest, Sampling
from searchparty.models.vllm_engine import VllmEngine
from searchparty.models.vllm_loading import ENVIRONMENT, put_weights, vllm_arguments

Found = Sequence[Sequence[Completion]]
STOPS = ("</search>", "</answer>", "</think>", "</evidence>")
print = Console(highlight=False, width=160).print


def random_prompts(count: int, length: int) -> list[list[int]]:
    generator = random.Random(0)
    return [[generator.randrange(1000, 30000) for _ in range(length)] for _ in range(count)]


def wrap(llm: Any, chat: Any, end_ids: Sequence[int]) -> VllmEngine:
    """The engine around the same vLLM that `LLM.generate` uses."""
    config = llm.llm_engine.model_config
    return VllmEngine(
        llm.llm_engine, vllm.SamplingParams, partial(put_weights, llm.llm_engine), chat.tokenizer, end_ids,
        context_tokens=config.max_model_len - 1, vocabulary=config.get_vocab_size(),
    )  # fmt: skip


async def ask(engine: VllmEngine, requests: Sequence[GenerateRequest], at_once: int | None = None) -> list[list[Completion]]:
    """The candidates of each request, `at_once` requests at a time."""
    at_once = at_once or len(requests)
    found = []
    for begin in range(0, len(requests), at_once):
        for reply in await engine.generate(requests[begin : begin + at_once]):
            assert isinstance(reply, Generated), reply
            found.append(list(reply.candidates))
    return found


def rates(llm: Any, chat: Any, options: argparse.Namespace) -> None:
    """Print tokens per second of vLLM's own loop and of the engine."""
    prompts = random_prompts(options.requests, options.prompt)
    tokens = options.requests * options.new

    def own(**how: Any) -> float:
        params = [
            vllm.SamplingParams(max_tokens=options.new, ignore_eos=True, **{"seed": place, "logprobs": 0, **how})
            for place in range(len(prompts))
        ]
        started = time.perf_counter()
        llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], params, use_tqdm=False)
        return time.perf_counter() - started

    def ours(stops: Sequence[str]) -> float:
        engine = wrap(llm, chat, [])
        sampling = Sampling(max_tokens=options.new)
        requests = [GenerateRequest([], prompt, sampling, seed=place, stop=stops) for place, prompt in enumerate(prompts)]
        started = time.perf_counter()
        asyncio.run(ask(engine, requests))
        seconds = time.perf_counter() - started
        asyncio.run(engine.close())
        return seconds

    rows = {
        "LLM.generate": lambda: own(),
        "LLM.generate, with stop strings": lambda: own(stop=list(STOPS)),
        "LLM.generate, no text": lambda: own(detokenize=False, flat_logprobs=True),
        "LLM.generate, no text, no seeds": lambda: own(detokenize=False, flat_logprobs=True, seed=None),
        "engine": lambda: ours(()),
        "engine, with stop strings": lambda: ours(STOPS),
    }
    rows["LLM.generate"]()
    for name, measure in rows.items():
        seconds = []
        for _ in range(options.rounds):
            llm.llm_engine.reset_prefix_cache()
            seconds.append(measure())
        print(f"{name:<34} {tokens / min(seconds):>9,.0f} tokens/s")


def checks(llm: Any, chat: Any, folder: Path, options: argparse.Namespace) -> None:
    """Print whether the engine keeps what `Engine` promises."""
    words = ["river", "king", "question", "answer", "search", "history", "city", "first", "born", "film"]
    generator = random.Random(1)
    texts = [f"Question {place}: who {' '.join(generator.choices(words, k=8))}?" for place in range(options.check_requests)]
    prompts = [chat.begin_action() + chat.tokenizer.encode(text) for text in texts]
    requests = [GenerateRequest([], prompt, Sampling(max_tokens=64), seed=place) for place, prompt in enumerate(prompts)]

    async def run() -> None:
        engine = wrap(llm, chat, chat.end_ids)
        found = await ask(engine, requests)
        await check_equality(engine, requests, found)
        await check_candidates(engine, prompts[0])
        await check_stop(engine, requests[0], found[0][0])
        await check_weights(engine, load_weights(folder), chat, requests, found, options.noise)
        await engine.close()

    asyncio.run(run())


async def check_equality(
    engine: VllmEngine, requests: Sequence[GenerateRequest], found: Sequence[Sequence[Completion]]
) -> None:
    """The same requests, fewer at a time."""
    for at_once, count in (32, len(requests)), (1, 32):
        again = await ask(engine, requests[:count], at_once)
        pairs = [(left[0].ids or (), right[0].ids or ()) for left, right in zip(found, again, strict=False)]
        equal = sum(left == right for left, right in pairs)
        before = mean(prefix_length(left, right) / max(1, len(left)) for left, right in pairs)
        print(f"{at_once} instead of {len(requests)} at a time: {equal} of {len(pairs)} completions equal;", end=" ")
        print(f"{before:.1%} of tokens come before the first difference")


async def check_candidates(engine: VllmEngine, prompt: Sequence[int]) -> None:
    """Candidates differ, and are fixed by their number."""
    asked = [GenerateRequest([], prompt, Sampling(max_tokens=16), seed=7, n=n) for n in (8, 3)]
    eight, three = [[candidate.ids for candidate in candidates] for candidates in await ask(engine, asked)]
    different = len({tuple(ids or ()) for ids in eight})
    print(f"8 candidates: {different} differ; the first 3 are those of n = 3: {eight[:3] == three}")


async def check_stop(engine: VllmEngine, asked: GenerateRequest, free: Completion) -> None:
    """The middle of a completion as its stop string."""
    stop = free.text[len(free.text) // 2 :][:3]
    ((stopped,),) = await ask(engine, [replace(asked, stop=[stop])])
    ids = list(stopped.ids or ())
    at_end = stop in stopped.text and stop not in stopped.text[: -len(stop) - 12]
    print(f"stop string {stop!r}: {stopped.finish_reason}; at the end: {at_end}; ids as without: {ids == free.ids[: len(ids)]}")


async def check_weights(
    engine: VllmEngine,
    weights: Any,
    chat: Any,
    requests: Sequence[GenerateRequest],
    found: Found,
    noise: float,
) -> None:
    """Log-probabilities beside those of transformers, before and after new weights."""
    beside = TransformersEngine(weights, chat.tokenizer, chat.end_ids, context_tokens=2047)
    print("mean and largest difference of log-probabilities to transformers:")
    await compare(engine, beside, requests, found, "the same weights")
    with torch.no_grad():
        generator = torch.Generator(weights.device).manual_seed(0)
        for parameter in weights.parameters():
            change = torch.randn(parameter.shape, generator=generator, device=parameter.device)
            parameter += (noise * parameter.float().std() * change).to(parameter.dtype)
    await beside.close()
    beside = TransformersEngine(weights, chat.tokenizer, chat.end_ids, context_tokens=2047)
    await compare(engine, beside, requests, found, "vLLM has the old weights")
    started = time.perf_counter()
    await engine.refresh(weights.state_dict().items())
    print(f"new weights put into vLLM in {1000 * (time.perf_counter() - started):.0f} ms")
    found = await ask(engine, requests)
    await compare(engine, beside, requests, found, "both have the new weights")
    await beside.close()


async def compare(
    engine: VllmEngine,
    beside: TransformersEngine,
    requests: Sequence[GenerateRequest],
    found: Found,
    what: str,
) -> None:
    """Recorded log-probabilities and vLLM's scores of the same tokens, beside the scores of transformers."""
    whole = [[*(asked.prompt_ids or ()), *(one[0].ids or ())] for asked, one in zip(requests, found, strict=True)]
    theirs = await beside.score(whole)
    started = time.perf_counter()
    scored = await engine.score(whole)
    rate = sum(map(len, whole)) / (time.perf_counter() - started)
    sampled, given = [], []
    for asked, one, their, own in zip(requests, found, theirs, scored, strict=True):
        assert isinstance(their, list) and isinstance(own, list)
        begin = len(asked.prompt_ids or ())
        sampled += [abs(a - b) for a, b in zip(one[0].logprobs or (), their[begin:], strict=True)]
        given += [abs(a - b) for a, b in zip(own, their, strict=True)]
    print(f"  {what}: {len(sampled)} sampled {mean(sampled):.1e}, {max(sampled):.1e};", end=" ")
    print(f"{len(given)} scored {mean(given):.1e}, {max(given):.1e} ({rate:,.0f} tokens/s)")


def prefix_length(left: Sequence[int], right: Sequence[int]) -> int:
    return next((place for place, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--requests", type=int, default=1024)
    parser.add_argument("--prompt", type=int, default=250)
    parser.add_argument("--new", type=int, default=96)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--check-requests", type=int, default=256)
    parser.add_argument(
        "--noise", type=float, default=0.02, help="new weights: the old and so many standard deviations of noise"
    )
    parser.add_argument("--memory-share", type=float, default=0.4)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--checks", action="store_true")
    parser.add_argument("--rates", action="store_true")
    options = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    folder = model_folder(options.model)
    chat = load_chat(folder, options.model)
    arguments = vllm_arguments(folder, options.memory_share, 2047, options.requests, options.dtype)
    started = time.perf_counter()
    llm = vllm.LLM(**{**arguments, "skip_tokenizer_init": False, "enforce_eager": options.eager})
    print(f"{options.model}, vLLM {vllm.__version__}, started in {time.perf_counter() - started:.0f} s")
    if options.checks or not options.rates:
        checks(llm, chat, folder, options)
    if options.rates or not options.checks:
        rates(llm, chat, options)


if __name__ == "__main__":
    main()
