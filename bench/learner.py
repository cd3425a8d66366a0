"""Training throughput of the learner beside a plain Hugging Face loop, on the same random sequences, in the same run.

    python bench/learner.py [--shape tiny|smollm2-135m|qwen2.5-0.5b|qwen3-4b] [--sequences 64] [--length 1024] [--spread 0]

Weights are random, in the shape of the named model. Both loops compute in bfloat16 with float32 weights in the optimizer on a
GPU, and in float32 on a CPU; both make one optimizer step over all sequences. The plain loop pads each batch to its longest
sequence and takes the model's own loss; the learner packs rows and takes the PPO-clip loss with entropy. Tokens are those of
the sequences, padding not counted. FLOP/s are 6 x parameters x tokens/s, whatever is computed twice. Each loop runs in a
process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers

from searchparty.credit.types import SequenceKey, Signal
from searchparty.learning.learner import Learner
from searchparty.learning.losses import PPOClip
from searchparty.learning.settings import LearnerSettings

PEAK = 790e12
"""bfloat16 FLOP/s that a large matrix product reaches on one H200."""


@dataclass(frozen=True)
class Shape:
    """A model's dimensions, and how much of it fits one pass on a card of 141 GB."""

    kind: str
    dimensions: dict[str, int]
    tokens_per_pass: int
    checkpointed_share: float
    """Of the learner's layers; the plain loop checkpoints all layers if this is above 0."""


def dimensions(vocabulary: int, hidden: int, inner: int, layers: int, heads: int, key_heads: int, head: int) -> dict[str, int]:
    """The dimensions under the names that configurations of transformers use."""
    return {
        "vocab_size": vocabulary, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": key_heads, "head_dim": head,
    }  # fmt: skip


SHAPES = {
    "tiny": Shape("Llama", dimensions(2048, 192, 512, 4, 4, 2, 48), 4096, 0.0),
    "smollm2-135m": Shape("Llama", dimensions(49152, 576, 1536, 30, 9, 3, 64), 49152, 0.0),
    "qwen2.5-0.5b": Shape("Qwen2", dimensions(151936, 896, 4864, 24, 14, 2, 64), 16384, 0.0),
    "qwen3-4b": Shape("Qwen3", dimensions(151936, 2560, 9728, 36, 32, 8, 128), 8192, 0.25),
}


@dataclass(frozen=True)
class Result:
    """One loop's figures."""

    seconds: float
    """Of the fastest step."""
    peak_gib: float
    """Device memory on a GPU, the process's largest resident size on a CPU."""
    parameters: int


def random_model(shape: Shape, device: str, dtype: torch.dtype) -> Any:
    """A model with random weights."""
    config_class = getattr(transformers, f"{shape.kind}Config")
    config = config_class(**shape.dimensions, tie_word_embeddings=True, max_position_embeddings=32768)
    torch.manual_seed(0)
    with torch.device(device):
        model = getattr(transformers, f"{shape.kind}ForCausalLM")(config)
    return model.to(dtype)


def random_ids(options: argparse.Namespace) -> list[np.ndarray]:
    """Sequences of `length` tokens, or of lengths spread evenly down to (1 - spread) x length."""
    random = np.random.default_rng(0)
    vocabulary = SHAPES[options.shape].dimensions["vocab_size"]
    lengths = random.integers(int(options.length * (1 - options.spread)), options.length + 1, options.sequences)
    return [random.integers(0, vocabulary, length).astype(np.int32) for length in lengths]


def timed(step: Callable[[], object], steps: int, device: str, parameters: int) -> Result:
    """The fastest of `steps` steps after two that are not counted."""
    seconds = []
    for _ in range(steps + 2):
        started = time.perf_counter()
        step()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else resident
    return Result(min(seconds[2:]), peak / 2**30, parameters)


def run_plain(options: argparse.Namespace) -> Result:
    """Padded batches, automatic mixed precision, AdamW."""
    shape, device = SHAPES[options.shape], options.device
    model = random_model(shape, device, torch.float32).train()
    if options.checkpointed_share > 0:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=device == "cuda")
    sequences = sorted(random_ids(options), key=len)
    rows = max(1, options.tokens_per_pass // options.length)
    batches = []
    for begin in range(0, len(sequences), rows):
        part = sequences[begin : begin + rows]
        ids = np.zeros((len(part), max(map(len, part))), np.int64)
        labels = np.full_like(ids, -100)
        for row, sequence in enumerate(part):
            ids[row, : len(sequence)] = labels[row, : len(sequence)] = sequence
        tensors = torch.from_numpy(ids), torch.from_numpy(labels >= 0).long(), torch.from_numpy(labels)
        batches.append([tensor.to(device) for tensor in tensors])

    def step() -> None:
        for ids, mask, labels in batches:
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                loss = model(input_ids=ids, attention_mask=mask, labels=labels, use_cache=False).loss
            (loss / len(batches)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return timed(step, options.steps, device, sum(parameter.numel() for parameter in model.parameters()))


def run_learner(options: argparse.Namespace) -> Result:
    """The learner, with `trainable` of each sequence's tokens trained."""
    shape, device = SHAPES[options.shape], options.device
    model = random_model(shape, device, torch.bfloat16 if device == "cuda" else torch.float32)
    settings = LearnerSettings(
        minibatches=1,
        tokens_per_pass=options.tokens_per_pass,
        old_logprobs="sampler",
        checkpointed_share=options.checkpointed_share,
        compiled=options.compile,
    )
    learner = Learner(model, settings, PPOClip(entropy_coefficient=1e-3))
    signals = []
    for number, ids in enumerate(random_ids(options)):
        trainable = np.arange(len(ids)) >= max(1, round(len(ids) * (1 - options.trainable)))
        share = (trainable / trainable.sum() / options.sequences).astype(np.float32)
        old = np.where(trainable, -np.log(shape.dimensions["vocab_size"]), 0).astype(np.float32)
        signals.append(
            Signal(SequenceKey(str(number), 0, "agent", 0), "agent", ids, trainable, old, trainable * np.float32(1), share)
        )
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return timed(lambda: learner.update(signals), options.steps, device, parameters)


def main() -> None:
    """Run both loops, print one table."""
    parser = argparse.ArgumentParser(description="Training throughput of the learner beside a plain Hugging Face loop.")
    parser.add_argument("--shape", choices=SHAPES, default="tiny")
    parser.add_argument("--sequences", type=int, default=64)
    parser.add_argument("--length", type=int, help="tokens of the longest sequence (default: 1024 on a GPU, 256 on a CPU)")
    parser.add_argument(
        "--spread", type=float, default=0.0, help="0: all equally long; 0.75: from a quarter to the whole length"
    )
    parser.add_argument("--trainable", type=float, default=1.0, help="share of tokens that the learner trains (default: all)")
    parser.add_argument("--tokens-per-pass", type=int, help="for both loops (default: by shape)")
    parser.add_argument("--checkpointed-share", type=float, help="share of layers computed twice (default: by shape)")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=torch.cuda.is_available())
    parser.add_argument("--loops", nargs="+", choices=("plain", "learner"), default=("plain", "learner"))
    options = parser.parse_args()
    shape = SHAPES[options.shape]
    options.length = options.length or (1024 if options.device == "cuda" else 256)
    options.tokens_per_pass = options.tokens_per_pass or shape.tokens_per_pass
    if options.checkpointed_share is None:
        options.checkpointed_share = shape.checkpointed_share

    tokens = sum(map(len, random_ids(options)))
    print(
        f"{options.shape} on {options.device}: {options.sequences} sequences, {tokens:,} tokens a step,"
        f" {options.tokens_per_pass:,} a pass, {options.checkpointed_share:.0%} of layers checkpointed;"
        f" torch {torch.__version__}, transformers {transformers.__version__}"
    )
    print(f"{'loop':>8} {'tokens/s':>10} {'TFLOP/s':>8} {'of 790':>7} {'peak GiB':>9}")
    loops = {"plain": run_plain, "learner": run_learner}
    for name in options.loops:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            result = pool.apply(loops[name], (options,))
        rate = tokens / result.seconds
        flops = 6 * result.parameters * rate
        share = f"{flops / PEAK:.1%}" if options.device == "cuda" else "-"
        print(f"{name:>8} {rate:>10,.0f} {flops / 1e12:>8.2f} {share:>7} {result.peak_gib:>9.2f}", flush=True)


if __name__ == "__main__":
    main()
