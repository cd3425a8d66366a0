"""Time and memory to read a run of many episodes and to write its report.

Episodes of the hierarchical team are played by the scripted engine and written under many question ids. Beside the numbers
stands the least that must be done: parsing the same file into the same records.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from searchparty.config.recipe import EvalRecipe
from searchparty.diagnosis.reading import diagnose_evaluation
from searchparty.episodes.store import EpisodeWriter, read_episodes
from searchparty.episodes.types import Episode
from searchparty.evaluation.run import score_run
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.scorers import SCORERS
from searchparty.models.loading import load_model
from searchparty.models.types import Sampling
from searchparty.questions import write_questions
from searchparty.questions.types import Question
from searchparty.reporting.systems import gather
from searchparty.reporting.writing import make_report, write_report
from searchparty.retrieval.types import Hit, Passage
from searchparty.teams.cast import Part
from searchparty.teams.hierarchical import Hierarchical
from searchparty.teams.play import play
from searchparty.teams.prompts import built_in_prompt

TEXT = "Paris is the capital and largest city of France, on the river Seine. " * 8
SAMPLES = 4


class FreeRetriever:
    async def search(self, query: str, k: int) -> list[Hit]:
        return [Hit(Passage(str(rank), f"Title {rank}", TEXT), rank, 1.0 / rank) for rank in range(1, k + 1)]


def write_run(folder: Path, episodes: int) -> RunDirectory:
    """A finished evaluation with so many episodes, four to a question."""
    team, model = Hierarchical(), load_model("scripted:default")
    cast = {role: Part(model, built_in_prompt(name), Sampling(max_tokens=2048)) for role, name in team.prompts.items()}
    questions = [
        Question(str(number), f"What is the capital of country {number}?", ("Paris",), f"set-{number % 7}", ("Title 1",))
        for number in range(episodes // SAMPLES)
    ]
    run = RunDirectory(folder / "run")
    write_questions(folder / "questions.jsonl", questions)
    document = {
        "team": "hierarchical",
        "model": "scripted:default",
        "questions": folder / "questions.jsonl",
        "samples": SAMPLES,
    }
    recipe = EvalRecipe.model_validate({**document, "index": "none"})
    run.begin(recipe, questions, {"questions": {}})
    played: Episode = asyncio.run(play(team, questions[0], cast, FreeRetriever()))
    with EpisodeWriter(run.episodes_file) as writer:
        for question in questions:
            for sample in range(SAMPLES):
                writer.write(replace(played, question_key=question.key, dataset=question.dataset, sample=sample))
    score_run(run, recipe, SCORERS["squad"])
    return run


@contextmanager
def measured(name: str) -> Iterator[None]:
    """Print the processor time of a block, and the most memory that the process has held so far."""
    started = time.process_time()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  {name:45s} {time.process_time() - started:7.1f} s   peak so far {peak:6.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=20_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = write_run(Path(folder), options.episodes)
        size = run.episodes_file.stat().st_size / 2**20
        print(f"report: {options.episodes} episodes of the hierarchical team, {size:.0f} MiB")
        steps: dict[str, Callable[[], object]] = {
            "parse the file, keep nothing": lambda: sum(1 for _ in read_episodes(run.episodes_file)),
            "diagnose": lambda: diagnose_evaluation(run.path),
            "report, all formats and plots": lambda: write_report(make_report(gather([run.path])), Path(folder) / "report"),
        }
        for name, step in steps.items():
            with measured(name):
                step()


if __name__ == "__main__":
    main()
