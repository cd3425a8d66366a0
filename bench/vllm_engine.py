"""The in-process vLLM engine beside vLLM's own `LLM.generate` and beside transformers: tokens per second, and equality.

    python bench/vllm_engine.py [--model smollm2] [--requests 1024] [--prompt 250] [--new 96] [--checks | --rates]

Rates: every request is one completion of exactly `--new` tokens after a random prompt, with a seed of its own and with the
log-probabilities of its tokens; all are sent at once. Checks: the same requests sent 1, 32 and all at a time; log-probabilities
beside those of the same tokens in transformers, before and after new weights are put into vLLM; stop strings; candidates.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
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
from searchparty.models.vllm_loading import vllm_arguments

STOPS = ("</search>", "</answer>", "</think>", "</evidence>")
print = Console(highlight=False, width=160).print


def random_prompts(count: int, length: int, first: int = 1000, last: int = 30000) -> list[list[int]]:
    generator = random.Random(0)
    return [[generator.randrange(first, last) for _ in range(length)] for _ in range(count)]


def wrap(llm: Any, chat: Any, end_ids: Sequence[int]) -> VllmEngine:
    config = llm.llm_engine.model_config
    return VllmEngine(
        llm.llm_engine, vllm.SamplingParams, chat.tokenizer, end_ids,
        context_tokens=config.max_model_len - 1, vocabulary=config.get_vocab_size(),
    )  # fmt: skip


async def ask(engine: VllmEngine, requests: Sequence[GenerateRequest], at_once: int | None = None) -> list[list[Completion]]:
    at_once = at_once or len(requests)
    found = []
    for begin in range(0, len(requests), at_once):
        for reply in await engine.generate(requests[begin : begin + at_once]):
            assert isinstance(reply, Generated), reply
            found.append(list(reply.candidates))
    return found


def rates(llm: Any, chat: Any, options: argparse.Namespace) -> None:
    prompts = random_prompts(options.requests, options.prompt)
    tokens = options.requests * options.new

    def own(**how: Any) -> float:
        params = [
            vllm.SamplingParams(seed=place, max_tokens=options.new, ignore_eos=True, **{"logprobs": 0, **how})
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


def checks(llm: Any, chat: Any, folder: Any, options: argparse.Namespace) -> None:
    words = "river king question answer search history city first born film".split()
    generator = random.Random(1)
    texts = [f"Question {place}: who {' '.join(generator.choices(words, k=8))}?" for place in range(options.check_requests)]
    prompts = [chat.begin_action() + chat.tokenizer.encode(text) for text in texts]
    requests = [GenerateRequest([], prompt, Sampling(max_tokens=64), seed=place) for place, prompt in enumerate(prompts)]

    async def run() -> None:
        engine = wrap(llm, chat, chat.end_ids)
        everything = await ask(engine, requests)
        for at_once in (32, 1):
            some = requests if at_once > 1 else requests[:32]
            again = await ask(engine, some, at_once)
            pairs = list(zip(everything, again, strict=False))
            equal = sum(left[0].ids == right[0].ids for left, right in pairs)
            first = [prefix_length(left[0].ids or (), right[0].ids or ()) / max(1, len(left[0].ids or ())) for left, right in pairs]
            print(f"{at_once} at a time and {len(requests)}: {equal} of {len(pairs)} completions equal, {mean(first):.1%} of tokens before the first difference")
        several = await ask(engine, [GenerateRequest([], prompts[0], Sampling(max_tokens=16), seed=7, n=n) for n in (8, 3)])
        print(f"candidates of 8: {len({tuple(c.ids or ()) for c in several[0]})} differ; the first 3 are those of n = 3: {[c.ids for c in several[0][:3]] == [c.ids for c in several[1]]}")
        free = everything[0][0]
        stop = free.text[len(free.text) // 2 :][:3]
        ((stopped,),) = await ask(engine, [GenerateRequest([], prompts[0], Sampling(max_tokens=64), seed=0, stop=[stop])])
        end = free.text.index(stop) + len(stop)
        print(f"stop {stop!r}: {stopped.finish_reason}, text ends there: {stopped.text[:end] == free.text[:end] and stop in stopped.text}, ids a prefix: {list(stopped.ids or ()) == list(free.ids or ())[: len(stopped.ids or ())]}")
        for sampling in (Sampling(0.7, 0.9, 0, 32), Sampling(0.7, 1.0, 20, 32), Sampling(0.0, 1.0, 0, 32)):
            found = await ask(engine, [GenerateRequest([], p, sampling, seed=1) for p in prompts[:16]])
            low = min(min(c[0].logprobs or [0]) for c in found)
            print(f"{sampling}: least log-probability {low:.2f}")

        weights = load_weights(folder)
        beside = TransformersEngine(weights, chat.tokenizer, chat.end_ids, context_tokens=2048)
        whole = [[*prompt, *(found[0].ids or ())] for prompt, found in zip(prompts, everything, strict=True)]
        print("mean and largest difference of log-probabilities to transformers:")
        await compare(engine, beside, requests, whole, everything, "as loaded")
        with torch.no_grad():
            noise = torch.Generator(weights.device).manual_seed(0)
            for parameter in weights.parameters():
                size = parameter.float().std() * options.noise
                parameter += (size * torch.randn(parameter.shape, generator=noise, device=parameter.device)).to(parameter.dtype)
        await compare(engine, beside, requests, whole, everything, "transformers has new weights, vLLM the old")
        started = time.perf_counter()
        await engine.refresh(weights.state_dict().items())
        print(f"new weights put into vLLM in {1000 * (time.perf_counter() - started):.0f} ms")
        fresh = await ask(engine, requests)
        whole = [[*prompt, *(found[0].ids or ())] for prompt, found in zip(prompts, fresh, strict=True)]
        await compare(engine, beside, requests, whole, fresh, "both have the new weights")
        started = time.perf_counter()
        await engine.score(whole)
        print(f"score: {sum(map(len, whole)) / (time.perf_counter() - started):,.0f} tokens/s")
        await engine.close()
        await beside.close()

    asyncio.run(run())


async def compare(engine: Any, beside: Any, requests: Any, whole: Any, found: Any, what: str) -> None:
    """Sampled log-probabilities and vLLM's scores beside the scores of transformers."""
    theirs, scored = await beside.score(whole), await engine.score(whole)
    sampled, given = [], []
    for asked, ((completion), *_), their, own in zip(requests, found, theirs, scored, strict=True):
        begin = len(asked.prompt_ids)
        sampled += [abs(a - b) for a, b in zip(completion.logprobs, their[begin:], strict=True)]
        given += [abs(a - b) for a, b in zip(own, their, strict=True)]
    print(f"  {what}: sampled {mean(sampled):.4f}, {max(sampled):.3f}; scored {mean(given):.4f}, {max(given):.3f}; {len(given)} tokens")


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
    parser.add_argument("--noise", type=float, default=0.02, help="new weights: the old and so many standard deviations of noise")
    parser.add_argument("--memory-share", type=float, default=0.4)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--checks", action="store_true")
    parser.add_argument("--rates", action="store_true")
    options = parser.parse_args()
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
