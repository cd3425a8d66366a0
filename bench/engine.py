"""Tokens per second of the in-process engine beside plain `model.generate`, and what the prefix cache saves.

    python bench/engine.py [--model smollm2] [--batches 1 8 32] [--prompt 300] [--new 64] [--threads N]

Every request is one sampled completion of exactly `--new` tokens after a random prompt; all requests of a row are sent at once.
Rates count new tokens over the seconds for prompt and completion together, the better of two rounds for small batches. On a
machine that does other work give --threads fewer than it has cores: threads that wait for one another measure its load.

The second table sends turns of one agent team: prompts that share a system message and worked examples, each continued once by
its own history.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from searchparty.errors import Failure
from searchparty.models.batch import BatchLimits
from searchparty.models.huggingface import load_chat, load_weights
from searchparty.models.loading import model_folder
from searchparty.models.transformers_engine import TransformersEngine
from searchparty.models.types import Generated, GenerateRequest, Sampling, Tokenizer


def random_ids(count: int, seed: int) -> list[int]:
    generator = random.Random(seed)
    return [generator.randrange(1000, 30000) for _ in range(count)]


def make_engine(weights: Any, tokenizer: Tokenizer, cache_tokens: int) -> TransformersEngine:
    """An engine that never ends a completion early."""
    limits = BatchLimits(cache_tokens=cache_tokens)
    return TransformersEngine(weights, tokenizer, [], context_tokens=weights.config.max_position_embeddings, limits=limits)


def with_library(weights: Any, prompts: Sequence[Sequence[int]], new: int) -> float:
    start = time.perf_counter()
    with torch.inference_mode():
        weights.generate(
            torch.tensor(prompts, device=weights.device),
            max_new_tokens=new,
            min_new_tokens=new,
            do_sample=True,
            top_k=0,
            pad_token_id=0,
        )
    return time.perf_counter() - start


async def ask_all(engine: TransformersEngine, prompts: Sequence[Sequence[int]], new: int) -> tuple[float, list[Generated]]:
    requests = [GenerateRequest([], prompt, Sampling(max_tokens=new), seed=place) for place, prompt in enumerate(prompts)]
    start = time.perf_counter()
    replies = await engine.generate(requests)
    seconds = time.perf_counter() - start
    return seconds, [reply for reply in replies if not isinstance(reply, Failure)]


async def with_engine(weights: Any, tokenizer: Tokenizer, prompts: Sequence[Sequence[int]], new: int) -> float:
    engine = make_engine(weights, tokenizer, cache_tokens=0)
    seconds, _ = await ask_all(engine, prompts, new)
    await engine.close()
    return seconds


async def two_turns(weights: Any, tokenizer: Tokenizer, agents: int, new: int, cache_tokens: int) -> tuple[float, float]:
    """Seconds for two turns of `agents` agents, and the share of prompt tokens that came from the cache."""
    engine = make_engine(weights, tokenizer, cache_tokens)
    common = random_ids(400, 0)
    prompts = [common + random_ids(60, 1 + agent) for agent in range(agents)]
    first_seconds, first = await ask_all(engine, prompts, new)
    later = [
        [*prompt, *(reply.candidates[0].ids or ()), *random_ids(200, 1000 + agent)]
        for agent, (prompt, reply) in enumerate(zip(prompts, first, strict=True))
    ]
    second_seconds, second = await ask_all(engine, later, new)
    await engine.close()
    replies = first + second
    cached = sum(reply.cached_tokens or 0 for reply in replies)
    return first_seconds + second_seconds, cached / sum(reply.prompt_tokens or 0 for reply in replies)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--prompt", type=int, default=300)
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    folder = model_folder(options.model)
    tokenizer, weights = load_chat(folder, options.model).tokenizer, load_weights(folder)
    console = Console()
    console.print(f"{options.model}, {weights.dtype} on {weights.device}, {torch.get_num_threads()} threads")
    with_library(weights, [random_ids(8, 0)], 4)

    table = Table("requests", "model.generate, new tokens/s", "engine, new tokens/s", "ratio")
    for batch in options.batches:
        prompts = [random_ids(options.prompt, seed) for seed in range(batch)]
        rounds = range(2 if batch < 16 else 1)
        library = batch * options.new / min(with_library(weights, prompts, options.new) for _ in rounds)
        engine = batch * options.new / min(asyncio.run(with_engine(weights, tokenizer, prompts, options.new)) for _ in rounds)
        table.add_row(str(batch), f"{library:.1f}", f"{engine:.1f}", f"{engine / library:.2f}")
    console.print(table)

    table = Table("agents, two turns each", "seconds without prefix cache", "seconds with it", "prompt tokens from the cache")
    for agents in options.batches:
        without, _ = asyncio.run(two_turns(weights, tokenizer, agents, options.new // 2, 0))
        cached, share = asyncio.run(two_turns(weights, tokenizer, agents, options.new // 2, 65536))
        table.add_row(str(agents), f"{without:.1f}", f"{cached:.1f}", f"{share:.0%}")
    console.print(table)


if __name__ == "__main__":
    main()
