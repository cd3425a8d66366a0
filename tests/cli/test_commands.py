"""The command line as a person meets it: exit codes, one line per mistake, interruption, and the forms that must stay."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from searchparty.questions import sample_corpus, sample_questions


def searchparty(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "searchparty.cli.main", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=cwd, check=False)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place") / "index"
    done = searchparty("index", "build", sample_corpus(), "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_eval_show_score_and_ask_work_one_after_the_other(index: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = searchparty(
        "eval", "--team", "hierarchical", "--model", "scripted:default", "--questions", sample_questions(), "--index", index,
        "--samples", 2, "--limit", 5, "--seed", 1, "-o", run,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "10 episodes" in done.stdout
    assert str(run) in done.stdout
    listed = searchparty("show", run)
    assert "10 episodes" in listed.stdout
    drawn = searchparty("show", run, "--episode", 1, "--tokens")
    assert "leader.1  (finished)" in drawn.stdout
    assert "wrote ▶ <task>" in drawn.stdout
    assert "token-exact" in drawn.stdout
    key = json.loads((run / "scores.jsonl").read_text().splitlines()[0])["question_key"]
    of_question = searchparty("show", run, "--question", key)
    assert of_question.stdout.count("· sample") == 2
    scored = searchparty("score", run, "--json")
    assert json.loads(scored.stdout)["behaviour"]["all"]["episodes"] == 10
    asked = searchparty("ask", "Who wrote Hamlet?", "--team", "chained", "--model", "scripted:default", "--index", index)
    assert asked.returncode == 0
    assert "searcher.1" in asked.stdout
    assert asked.stdout.splitlines()[-1].startswith("answer  ")


def test_a_recipe_file_with_overrides_anywhere_on_the_line_is_the_same_as_options(index: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(f"team: rag\nmodel: scripted:default\nquestions: {sample_questions()}\nindex: {index}\n")
    done = searchparty("eval", recipe, "limit=3", "-o", tmp_path / "run", "team.passages=1", "sampling.temperature=0")
    assert done.returncode == 0, done.stderr
    resolved = (tmp_path / "run" / "recipe.resolved.yaml").read_text()
    assert "passages: 1" in resolved
    assert "limit: 3" in resolved


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("eval", "--team", "chaned", "--model", "scripted:default", "--questions", "QUESTIONS", "-o", "run"),
            "did you mean chained",
        ),
        (
            ("eval", "--team", "direct", "--model", "scripted:default", "--questions", "none.jsonl", "-o", "run"),
            "none.jsonl: no such file",
        ),
        (("eval", "--team", "direct", "--questions", "QUESTIONS", "-o", "run"), "model: is missing"),
        (("eval", "none.yaml", "-o", "run"), "none.yaml: no such recipe"),
        (
            (
                "eval",
                "--team",
                "rag",
                "--model",
                "scripted:default",
                "--questions",
                "QUESTIONS",
                "--index",
                "nowhere",
                "-o",
                "run",
            ),
            "nowhere",
        ),
        (
            ("eval", "--team", "direct", "--model", "no-such-model", "--questions", "QUESTIONS", "-o", "run"),
            "no-such-model: not a model",
        ),
        (
            ("eval", "--team", "direct", "--model", "scripted:default", "--questions", "QUESTIONS", "-o", "run", "samples=0"),
            "samples: ",
        ),
        (("ask", " ", "--team", "direct", "--model", "scripted:default"), "the question is empty"),
        (("score", "nowhere"), "nowhere: no run here"),
        (("show", "nowhere"), "nowhere: no run here"),
    ],
)
def test_a_mistake_is_one_line_on_standard_error_with_exit_code_2(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    words = tuple(str(sample_questions()) if word == "QUESTIONS" else word for word in words)
    done = searchparty(*words, cwd=tmp_path)
    assert done.returncode == 2
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("searchparty: error: ")
    assert message in lines[0]
    assert not (tmp_path / "run").exists()


def test_several_mistakes_in_a_recipe_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("team: direct\nmodle: smollm2\nsamples: many\n")
    done = searchparty("eval", "recipe.yaml", "-o", "run", cwd=tmp_path)
    assert done.returncode == 2
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 4
    assert any("modle: unknown key; did you mean model?" in line for line in lines)


def test_an_unknown_option_or_command_is_a_mistake_too() -> None:
    assert searchparty("eval", "--frobnicate").returncode == 2
    assert searchparty("evaluate").returncode == 2


def test_help_and_version_load_no_heavy_module() -> None:
    code = "import sys\nfrom searchparty.cli.main import build_parser\nbuild_parser(None).format_help()\nprint(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "torch", "transformers", "pydantic", "rich", "httpx", "bm25s"} & set(modules)
    assert searchparty("--version").stdout.startswith("searchparty ")


def slow_team(tmp_path: Path) -> Path:
    path = tmp_path / "slow.py"
    path.write_text(
        "import asyncio\nfrom dataclasses import dataclass\nfrom typing import ClassVar\n"
        "from searchparty.teams.answering import give_answer\nfrom searchparty.teams.team import Team\n\n"
        '@dataclass(frozen=True)\nclass Slow(Team):\n    name: ClassVar = "slow"\n'
        '    tags: ClassVar = {"answerer": ("answer",)}\n    prompts: ClassVar = {"answerer": "direct_answerer"}\n'
        "    needs_retriever: ClassVar = False\n\n    async def run(self, question, workspace):\n"
        "        await asyncio.sleep(0.05)\n        workspace.begin_step()\n"
        '        agent = workspace.agent("answerer")\n        agent.tell("question", question=question.text)\n'
        "        return await give_answer(agent)\n"
    )
    return path


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_run_that_is_interrupted_or_killed_resumes_and_accounts_for_every_question(
    tmp_path: Path, sign: signal.Signals, code: int
) -> None:
    words = [
        "eval", "--team", f"{slow_team(tmp_path)}:Slow", "--model", "scripted:default", "--questions", str(sample_questions()),
        "-o", str(tmp_path / "run"), "concurrency=2",
    ]  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "searchparty.cli.main", *words], stderr=subprocess.PIPE, text=True)
    episodes = tmp_path / "run" / "episodes" / "eval.jsonl"
    deadline = time.monotonic() + 60
    while not (episodes.exists() and episodes.read_bytes().count(b"\n") >= 5) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, sign)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code
    assert "Traceback" not in errors
    done_before = episodes.read_bytes().count(b"\n")
    assert 5 <= done_before < 200
    resumed = searchparty(*words, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    keys = [json.loads(line)["question_key"] for line in (tmp_path / "run" / "scores.jsonl").read_text().splitlines()]
    assert len(keys) == len(set(keys)) == 200
    assert episodes.read_bytes().count(b"\n") == 200


def test_an_endpoint_that_is_down_becomes_recorded_endings_and_exit_code_1(tmp_path: Path) -> None:
    done = searchparty(
        "eval", "--team", "direct", "--model", "http://127.0.0.1:9/v1#m", "--questions", sample_questions(), "--limit", 3,
        "-o", tmp_path / "run", "model.timeout=2",
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "model_failed 3" in done.stdout
    assert "--resume" in done.stderr


def test_show_takes_the_nth_episode_of_a_question_and_foreign_markup_is_only_text(tmp_path: Path) -> None:
    questions = tmp_path / "q.jsonl"
    records = [
        {"id": str(number), "dataset": "[/x]", "question": f"[bold]Who {number}?[/] [/]", "golden_answers": ["[red]x"]}
        for number in (1, 2)
    ]
    questions.write_text("".join(json.dumps(record) + "\n" for record in records))
    words = (
        "eval",
        "--team",
        "direct",
        "--model",
        "scripted:default",
        "--questions",
        questions,
        "--samples",
        2,
        "-o",
        tmp_path / "run",
    )
    done = searchparty(*words)
    assert done.returncode == 0, done.stderr
    assert "[/x]" in done.stdout
    drawn = searchparty("show", tmp_path / "run", "--question", "2", "--episode", "2")
    assert "[bold]Who 2?[/] [/]" in drawn.stdout
    assert "sample 1" in drawn.stdout
    assert "[red]x" in searchparty("show", tmp_path / "run").stdout
    assert searchparty("show", tmp_path / "run", "--question", "2", "--episode", "3").returncode == 2
