"""`python -m searchparty.tiny.make -o DIR`: make the tiny policy again from nothing, and measure it.

DIR gets a model folder (`--model DIR`) and `figures.json`: the course, its losses, and how the model plays in new worlds.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchparty.errors import UserError

if TYPE_CHECKING:
    from searchparty.credit.types import Signal
    from searchparty.models.types import Tokenizer
    from searchparty.tiny.lessons import Lesson

FIGURES_FILE = "figures.json"


def main(arguments: list[str] | None = None) -> int:
    """The command. Returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m searchparty.tiny.make", description="Make the tiny policy from nothing.")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder of the new model")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of weights and order (0)")
    parser.add_argument("--effort", type=float, default=1.0, metavar="X", help="share of the course that is taught (1.0)")
    parser.add_argument("--questions", type=int, default=200, metavar="N", help="questions to measure with, 0 for none (200)")
    options = parser.parse_args(arguments)
    # Threads that wait by spinning slow each other down wherever something else runs. Read when torch is first imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        make(options.output, seed=options.seed, effort=options.effort, questions=options.questions)
    except UserError as error:
        print(*(f"searchparty: {line}" for line in error.lines), sep="\n", file=sys.stderr)
        return 2
    print(f"{options.output}: a model; try: searchparty ask ... --model {options.output}")
    return 0


def make(target: Path, *, seed: int = 0, effort: float = 1.0, questions: int = 200) -> None:
    """Teach a new policy and write it to `target`, which appears complete or not at all.

    Args:
        effort: share of the full course, above 0.
        questions: how many of each held-out world are asked to measure it; 0 measures nothing.

    Raises:
        UserError: `target` exists and is not empty, or cannot be written.
    """
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UserError(f"{target}: already exists; choose another folder")
    if not effort > 0:
        raise UserError(f"--effort {effort}: must be above 0")
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        unfinished.mkdir(parents=True)
        _make_in(unfinished, seed, effort, questions)
        unfinished.rename(target)
    except OSError as error:
        raise UserError(f"{target}: cannot be written ({error.strerror or error}); nothing was left behind") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _make_in(folder: Path, seed: int, effort: float, questions: int) -> None:
    import torch

    from searchparty.files import write_json
    from searchparty.learning.export import export_model
    from searchparty.models.huggingface_tokenizer import HuggingFaceTokenizer
    from searchparty.tiny.architecture import Shape, new_model
    from searchparty.tiny.course import full_course, vocabulary
    from searchparty.tiny.schooling import teach, with_all_tokens
    from searchparty.tiny.tokenizer import build_tokenizer, save_tokenizer

    started = time.monotonic()
    backend, shape, course = build_tokenizer(vocabulary()), Shape(), full_course(effort)
    save_tokenizer(backend, folder, shape.context_tokens)
    tokenizer = HuggingFaceTokenizer(backend)
    read = [[with_all_tokens(signal) for signal in _signals(lesson, tokenizer)] for lesson in course.reading]
    played = _signals(course.playing, tokenizer)
    model = new_model(backend, shape, seed)

    def report(done: int, steps: int, loss: float) -> None:
        passed = time.monotonic() - started
        _say(f"step {done}/{steps}, loss {loss:.3f} nats a token, {passed:.0f} s")

    losses = teach(model, [*read, played], seed, report)
    export_model(model.to(torch.bfloat16), folder)
    figures: dict[str, Any] = {
        "seed": seed,
        "effort": effort,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "vocabulary": backend.get_vocab_size(),
        "sequences": [len(part) for part in [*read, played]],
        "tokens": [sum(len(signal.ids_T) for signal in part) for part in [*read, played]],
        "action_tokens_played": sum(int(signal.trainable_T.sum()) for signal in played),
        "losses": [round(loss, 4) for loss in losses],
    }
    if questions:
        figures["held_out"] = _measure(folder, questions)
    write_json(folder / FIGURES_FILE, figures)


def _signals(lesson: Lesson, tokenizer: Tokenizer) -> list[Signal]:
    from searchparty.learning.sft import imitation_signals
    from searchparty.tiny.lessons import play_lesson

    signals = [signal for episodes in play_lesson(lesson, tokenizer) for signal in imitation_signals(episodes)]
    _say(f"{lesson.worlds} worlds played: {len(signals)} histories")
    return signals


def _measure(folder: Path, questions: int) -> dict[str, Any]:
    """By sampling temperature and team."""
    from searchparty.models.loading import load_model
    from searchparty.tiny.measuring import as_records, measure

    measured = {}
    for temperature in (1.0, 0.0):
        model = load_model(str(folder), device="cpu")
        measured[f"temperature {temperature:g}"] = as_records(measure(model, questions=questions, temperature=temperature))
        _say(f"measured at temperature {temperature:g}: {measured[f'temperature {temperature:g}']}")
    return measured


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
