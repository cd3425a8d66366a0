"""Time and memory to read a run of many episodes, to score it, to find what went wrong in it, and to write its report.

Episodes of the hierarchical team are played by the scripted engine and written under many question ids. Every step is a process
of its own. The plain alternative is the least that must be done: `json.loads` for every line of the same file, nothing kept.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from own_process import apart

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


def write_run(path: Path, episodes: int) -> None:
    """A finished evaluation with so many episodes, four to a question."""
    team, model = Hierarchical(), load_model("scripted:default")
    cast = {role: Part(model, built_in_prompt(name), Sampling(max_tokens=2048)) for role, name in team.prompts.items()}
    questions = [
        Question(str(number), f"What is the capital of country {number}?", ("Paris",), f"set-{number % 7}", ("Title 1",))
        for number in range(episodes // SAMPLES)
    ]
    run, file = RunDirectory(path), path.with_name("questions.jsonl")
    write_questions(file, questions)
    document = {"team": "hierarchical", "model": "scripted:default", "questions": file, "samples": SAMPLES, "index": "none"}
    run.begin(EvalRecipe.model_validate(document), questions, {"questions": {}})
    played: Episode = asyncio.run(play(team, questions[0], cast, FreeRetriever()))
    with EpisodeWriter(run.episodes_file) as writer:
        for question in questions:
            for sample in range(SAMPLES):
                writer.write(replace(played, question_key=question.key, dataset=question.dataset, sample=sample))
    score(run)


def the_run(path: Path) -> RunDirectory:
    return RunDirectory(path)


def parse_plainly(run: RunDirectory) -> None:
    with run.episodes_file.open(encoding="utf-8") as lines:
        for line in lines:
            json.loads(line)


def read(run: RunDirectory) -> None:
    for _ in read_episodes(run.episodes_file):
        pass


def score(run: RunDirectory) -> None:
    score_run(run, run.read_recipe(), SCORERS["squad"])


def diagnose(run: RunDirectory) -> None:
    diagnose_evaluation(run.path)


def report(run: RunDirectory) -> None:
    write_report(make_report(gather([run.path])), run.path.with_name("report"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=20_000)
    episodes = parser.parse_args().episodes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run"
        write_run(path, episodes)
        size = the_run(path).episodes_file.stat().st_size / 2**20
        print(f"report: a run of {episodes:,} episodes of the hierarchical team, {size:,.0f} MiB")
        print("processor time, and peak memory of the step's own process")
        plain = apart(partial(the_run, path), parse_plainly)
        print(plain.line("plain: json.loads for every line, nothing kept"))
        steps: dict[str, Callable[[RunDirectory], None]] = {
            "read every episode, nothing kept": read,
            "read and score, with all intervals": score,
            "read and diagnose": diagnose,
            "report: read, diagnose, draw plots, write all formats": report,
        }
        for name, step in steps.items():
            used = apart(partial(the_run, path), step)
            print(f"{used.line(name)}   {used.seconds / plain.seconds:5.1f} times plain")


if __name__ == "__main__":
    main()
