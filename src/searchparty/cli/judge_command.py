"""`searchparty judge`: a model's opinion of the answers of a finished evaluation, beside the score and never in its place."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from searchparty.cli.numbers import positive

if TYPE_CHECKING:
    from searchparty.judging.run import Judgement


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("run_directory", type=Path, metavar="RUN", help="what `searchparty eval` made")
    parser.add_argument("--model", required=True, help="the judge: a model as for searchparty eval")
    parser.add_argument("--prompt", type=Path, metavar="FILE", help="a prompt file with the turn `answer` (default: built in)")
    parser.add_argument("--canaries", type=positive, default=10, metavar="N", help="questions asked with wrong answers (10)")
    parser.add_argument("--max-tokens", type=positive, default=64, metavar="N", help="most tokens of a verdict (64)")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")


def run(options: argparse.Namespace) -> int:
    """Ask, count, write and print. Returns 1 if the judge is not to be believed: by its canaries, or without verdicts."""
    from searchparty.cli.interruption import run_until_interrupted
    from searchparty.episodes.printable import printable
    from searchparty.judging.judge import AnswerJudge, answer_prompt
    from searchparty.judging.run import judge_case, read_case
    from searchparty.models.loading import load_model

    prompt = answer_prompt(options.prompt)
    case = read_case(options.run_directory, canaries=options.canaries)

    async def work() -> Judgement:
        model = load_model(options.model)
        try:
            judge = AnswerJudge(model, prompt, max_tokens=options.max_tokens)
            return await judge_case(case, judge)
        finally:
            await model.engine.close()

    found = run_until_interrupted(work())
    if options.json:
        print((options.run_directory / "judge.json").read_text(encoding="utf-8"), end="")
    else:
        print("\n".join(map(printable, _lines(found))))
    if found.failed_canaries:
        print(
            f"searchparty: {found.failed_canaries} answers that are wrong were not called wrong; do not believe this column",
            file=sys.stderr,
        )
    if found.unusable:
        print(
            f"searchparty: {len(found.unusable)} answers got no usable verdict: {printable(found.unusable[0])}", file=sys.stderr
        )
    return 1 if found.failed_canaries or found.unusable else 0


def _lines(found: Judgement) -> list[str]:
    both = found.agreement
    kappa = "not defined" if both.kappa is None else f"{both.kappa:.2f}{_ends(found, 'kappa', 1, 2)}"
    canaries = ", ".join(f"{kind} {failed} of {asked}" for kind, (asked, failed) in found.canaries.items())
    return [
        f"judge {found.model}, prompt {found.prompt} ({found.prompt_digest})",
        f"right for the judge    {100 * found.right:.1f} % [{100 * found.low:.1f}, {100 * found.high:.1f}], secondary",
        f"exact match, the score {100 * found.exact_match:.1f} %{_ends(found, 'exact_match')}",
        f"they agree on          {100 * both.share:.1f} %{_ends(found, 'agreement')} of {both.episodes} episodes, "
        f"kappa {kappa}; right for both {both.both_right}, for the judge alone {both.only_judge}, by exact match alone "
        f"{both.only_exact_match}",
        f"canaries not called wrong: {canaries or 'none asked'}; all must be 0",
        *(f"for the judge alone    {line}" for line in found.only_judge),
    ]


def _ends(found: Judgement, name: str, factor: int = 100, digits: int = 1) -> str:
    ends = ", ".join(f"{factor * end:.{digits}f}" for end in found.intervals.get(name, ()))
    return f" [{ends}]" if ends else ""
