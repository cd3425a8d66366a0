"""The demo: both stages of MultiAgent-OPD on a laptop, from a bare start to held-out numbers and an audit.

    python -m searchparty.demo --output runs/demo

It makes a small world of questions and passages, trains the tiny policy by `recipes/world-demo.yaml`, evaluates it before and
after on held-out questions, proves from the record that what was trained on is what was sampled, and writes a report. It prints
the commands that do the same one by one.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from searchparty.cli.audit_command import audit_and_print
from searchparty.cli.console import make_console
from searchparty.cli.interruption import run_until_interrupted
from searchparty.cli.report_command import report_and_print
from searchparty.cli.report_table import report_table
from searchparty.cli.train_progress import TrainProgress
from searchparty.config.load import load_recipe
from searchparty.episodes.picture import draw_episode
from searchparty.errors import UserError
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.wide_tables import print_tables
from searchparty.retrieval.bm25 import BM25Index
from searchparty.training.checking import check_recipe
from searchparty.training.listening import TrainingStopped
from searchparty.training.recipe import TrainRecipe
from searchparty.training.report import Compared, read_report
from searchparty.training.run import train
from searchparty.training.run_directory import TrainDirectory
from searchparty.world import WorldParameters, make_world, write_world
from searchparty.world.storing import CORPUS_FILE

WORLD = Path("runs/world")
WORLD_SEED = 5
JOBS = 2
"""Stages at once: the demo is for a machine with two cores."""


def prepare_world() -> None:
    """Make the world and its index where the recipe looks for them, unless they are there."""
    if not (WORLD / CORPUS_FILE).is_file():
        _command(f"searchparty world make -o {WORLD} --seed {WORLD_SEED}")
        write_world(make_world(WorldParameters(seed=WORLD_SEED)), WORLD)
    if not (WORLD / "index").is_dir():
        _command(f"searchparty index build {WORLD / CORPUS_FILE} -o {WORLD / 'index'}")
        BM25Index.build(WORLD / CORPUS_FILE, WORLD / "index")


def verdict(rows: list[Compared]) -> list[str]:
    """In words, whether each trained team is better than its base on the held-out questions."""
    lines = []
    for row in rows:
        if row.difference is None or row.difference_interval is None:
            continue
        low, high = (100 * end for end in row.difference_interval)
        sure = "above zero" if low > 0 else "below zero" if high < 0 else "zero is inside: no difference is shown"
        lines.append(
            f"{row.title}: {100 * row.difference:+.1f} points of exact match against {row.baseline}, 95 % interval "
            f"[{low:+.1f}, {high:+.1f}] ({sure})"
        )
    return lines


def _command(text: str) -> None:
    make_console().print(f"$ {text}", style="bold", soft_wrap=True)


def main() -> int:
    """Prepare, train, compare, audit, report, and say what to do next. Returns 1 if the audit finds a violation."""
    parser = argparse.ArgumentParser(prog="python -m searchparty.demo", description="Train a team of search agents.")
    parser.add_argument("--output", type=Path, default=Path("runs/demo"), metavar="RUN", help="run directory (runs/demo)")
    parser.add_argument("--recipe", type=Path, default=Path("recipes/world-demo.yaml"), metavar="FILE", help="training recipe")
    options = parser.parse_args()
    console, started = make_console(), time.monotonic()
    console.print(
        "A policy of 0.84 million parameters learns to search in a team. Stage 1 trains a Searcher and an Answerer by\n"
        "outcome; stage 2 trains Leader, Searchers and Answerer, the Searchers token by token by the frozen result of stage 1."
    )
    try:
        prepare_world()
        recipe = load_recipe(TrainRecipe, options.recipe, [], {})
        check_recipe(recipe)
        run = TrainDirectory(options.output)
        flags = " --resume" if run.is_run else ""
        _command(f"searchparty train {options.recipe} -o {options.output} --jobs {JOBS}{flags}")
        with TrainProgress() as progress:
            work = train(recipe, options.output, resume=run.is_run, jobs=JOBS, listener=progress)
            run_until_interrupted(work)
        rows = read_report(run)
        console.print("\nHeld-out questions, which no stage has seen:")
        print_tables(console, report_table(rows))
        console.print(*verdict(rows), sep="\n", soft_wrap=True)
        _command(f"searchparty audit {options.output}")
        sound = audit_and_print(options.output)
        _command(f"searchparty report {options.output}")
        page = report_and_print([options.output])
    except UserError as error:
        print("\n".join(f"searchparty: error: {line}" for line in error.lines), file=sys.stderr)
        return 2
    except TrainingStopped as stop:
        print(f"searchparty: {stop}", file=sys.stderr)
        return 1
    last = run.evaluation(rows[-1].stage)
    episodes = list(RunDirectory(last).latest(lambda episode: episode).values())
    console.print(f"\nOne held-out episode of {rows[-1].title}; what an agent wrote is marked ▶:")
    console.print(draw_episode(max(episodes[:50], key=lambda episode: len(episode.agents))))
    console.print(
        f"\n{time.monotonic() - started:.0f} s. Next:\n"
        f"the whole story        {page}\n"
        f"what each step did     {options.output}/metrics.jsonl\n"
        f"read an episode        searchparty show {last} --episode 1 --tokens\n"
        f'ask the trained team   searchparty ask "..." --team hierarchical --model run:{options.output}#student '
        f"--index {WORLD}/index prompts=world   (a question of {WORLD}/questions-test.jsonl)\n"
        "all comparisons        searchparty train recipes/world-full.yaml   (three seeds; about two hours)\n"
        "your own model         recipes/multiagent-opd.yaml, docs/training.md",
        soft_wrap=True,
    )
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
