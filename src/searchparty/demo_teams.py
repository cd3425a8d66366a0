"""A look at the teams: four of them answer bundled real questions over bundled real passages with a small real language model.

    python -m searchparty.demo_teams --output runs/teams

It prints the commands that do the same, the questions once chosen. SmolLM2-135M is about the smallest model that can follow
the teams' formats at all, and the numbers are what it earns.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from searchparty.cli.console import make_console
from searchparty.cli.interruption import run_until_interrupted
from searchparty.cli.progress import EpisodeProgress
from searchparty.config.recipe import EvalRecipe
from searchparty.episodes.picture import draw_episode
from searchparty.errors import UserError
from searchparty.evaluation.run import evaluate
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.staging import Models
from searchparty.evaluation.summary import RunSummary
from searchparty.evaluation.table import team_tables
from searchparty.evaluation.wide_tables import print_tables
from searchparty.questions import read_questions, sample_corpus, sample_questions, write_questions
from searchparty.questions.types import Question
from searchparty.retrieval.bm25 import BM25Index
from searchparty.teams.registry import BUILT_IN

PASSAGE_CHARACTERS = 300
"""Passages are cut here in the demo, to keep reading quick on two cores."""


def choose_questions(count: int) -> list[Question]:
    """The first questions of each bundled dataset, as many of each as possible."""
    by_dataset: dict[str, list[Question]] = {}
    for question in read_questions(sample_questions()):
        by_dataset.setdefault(question.dataset, []).append(question)
    rounds = zip(*by_dataset.values(), strict=False)
    return [question for one_of_each in rounds for question in one_of_each][:count]


async def run_teams(output: Path, model: str, count: int) -> list[RunSummary]:
    """Build the index if it is not there, then evaluate each built-in team on the same questions."""
    console = make_console()
    index, questions = output / "index", output / "questions.jsonl"
    write_questions(questions, choose_questions(count))
    if not index.exists():
        console.print(f"$ searchparty index build {sample_corpus()} -o {index}", style="bold", soft_wrap=True)
        BM25Index.build(sample_corpus(), index)
    summaries, models = [], Models()
    try:
        for name, team in BUILT_IN.items():
            options = {"passage_characters": PASSAGE_CHARACTERS} if team.needs_retriever else {}
            words = [f"team.{key}={value}" for key, value in options.items()] + [
                "sampling.temperature=0",
                "sampling.max_tokens=96",
            ]
            command = f"--team {name} --model {model} --questions {questions} --index {index} -o {output / name}"
            console.print(f"$ searchparty eval {command} {' '.join(words)}", style="bold", soft_wrap=True)
            recipe = EvalRecipe.model_validate(
                {
                    "team": {"name": name, **options},
                    "model": model,
                    "questions": questions,
                    "index": str(index),
                    "sampling": {"temperature": 0, "max_tokens": 96},
                }
            )
            with EpisodeProgress() as progress:
                work = evaluate(
                    recipe,
                    output / name,
                    overwrite=RunDirectory(output / name).is_run,
                    on_episode=progress.on_episode,
                    models=models,
                )
                summaries.append(await work)
    finally:
        await models.close()
    return summaries


def main() -> int:
    """Run the demo and print tables, one episode, and what to do next."""
    parser = argparse.ArgumentParser(
        prog="python -m searchparty.demo_teams", description="Four teams answer bundled questions."
    )
    parser.add_argument(
        "--output", type=Path, default=Path("runs/teams"), help="directory for index and runs (default runs/teams)"
    )
    parser.add_argument("--model", default="smollm2", help="as in searchparty eval (default smollm2)")
    parser.add_argument("--questions", type=int, default=16, help="how many of the 200 bundled questions (default 16)")
    options = parser.parse_args()
    console = make_console()
    console.print(f"{options.questions} real questions, 2,000 real Wikipedia passages, four teams, model {options.model}.")
    try:
        summaries = run_until_interrupted(run_teams(options.output, options.model, options.questions))
    except UserError as error:
        print("\n".join(f"searchparty: error: {line}" for line in error.lines), file=sys.stderr)
        return 2
    last = options.output / summaries[-1].team
    episodes = RunDirectory(last).latest(lambda episode: episode).values()
    console.print(f"\nOne episode of the team {summaries[-1].team}; what an agent wrote is marked ▶:")
    console.print(draw_episode(max(episodes, key=lambda episode: len(episode.agents))))
    print_tables(console, *team_tables(summaries))
    console.print(
        f"\n{options.questions} questions only, so the intervals are wide; a model as small as smollm2 earns little.\n"
        f"run directories  {options.output}/{{{','.join(summary.team for summary in summaries)}}}\n"
        f"read one         searchparty show {last} --episode 1 --tokens\n"
        f'ask yourself     searchparty ask "Where was Kafka born?" --team rag --model smollm2 --index {options.output}/index',
        soft_wrap=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
