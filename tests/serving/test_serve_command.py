"""`searchparty serve` as a person runs it: the tiny policy behind HTTP, its record, its end, and bad input."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from searchparty.cli.main import main
from searchparty.episodes.store import read_episodes
from searchparty.http_server.listening import bind
from searchparty.questions import load_questions
from searchparty.retrieval.bm25 import BM25Index
from searchparty.world import WorldParameters, make_world, write_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place") / "world"
    write_world(make_world(WorldParameters(entities=120, train=20, dev=10, test=20)), folder)
    BM25Index.build(folder / "corpus.jsonl", folder / "index")
    return folder


@contextmanager
def served(*words: object) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """The process, and a client of it."""
    command = [sys.executable, "-m", "searchparty", "serve", "--port", "0", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"at (http://\S+)/v1 and ", said)
        assert found, said + process.communicate()[1]
        with httpx.Client(base_url=found[1], trust_env=False, timeout=120) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def team(world: Path) -> list[object]:
    return ["--team", "hierarchical", "--model", "tiny", "--index", world / "index", "prompts=world"]


def test_clients_at_once_get_what_ask_gives_with_the_same_seed(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The record holds them too, and is read like a run; SIGTERM ends the server with 0."""
    texts = [question.text for question in load_questions(world / "questions-test.jsonl").questions[:4]]
    record = tmp_path / "record"
    with served(*team(world), "--record", record, "--seed", 5) as (process, client), ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda text: client.post("/ask", json={"question": text}).json(), texts))
        process.send_signal(signal.SIGTERM)
        assert process.wait(90) == 0
    alone = []
    for text in texts[:2]:
        main(["ask", text, *map(str, team(world)), "--seed", "5"])
        last = capsys.readouterr().out.splitlines()[-1]
        alone.append(last.removeprefix("answer  ") if last.startswith("answer  ") else None)
    assert [reply["answer"] for reply in replies[:2]] == alone
    assert any(alone)

    episodes = {episode.question: episode for episode in read_episodes(record / "episodes" / "eval.jsonl")}
    assert set(episodes) == set(texts)
    assert all(episode.token_exact and episode.seed == 5 for episode in episodes.values())
    for command in ("show", "costs", "diagnose"):
        assert main([command, str(record)]) == 0
    assert "No question has a golden answer" in capsys.readouterr().out
    assert main(["score", str(record)]) == 2
    assert "has no golden answer, so nothing can be scored" in capsys.readouterr().err


def test_a_record_is_added_to_when_asked_and_never_lost_otherwise(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--team", "rag", "--model", "scripted:default", "--index", world / "index", "--record", tmp_path / "record"]
    for number, more in enumerate(([], ["--resume"])):
        with served(*words, *more) as (process, client):
            assert client.post("/ask", json={"question": f"who is {number}?"}).status_code == 200
            process.kill()
            process.wait()
    assert [one.question for one in read_episodes(tmp_path / "record" / "episodes" / "eval.jsonl")] == [
        "who is 0?",
        "who is 1?",
    ]
    assert main(["serve", "--port", "0", *map(str, words)]) == 2
    assert "already exists; add --resume" in capsys.readouterr().err
    assert main(["serve", "--port", "0", *map(str, words), "--resume", "--seed", "7"]) == 2
    assert "seed was 0, is now 7" in capsys.readouterr().err


def test_a_signal_finishes_the_running_question_first(world: Path) -> None:
    with served(*team(world)) as (process, client):
        [question] = load_questions(world / "questions-test.jsonl").questions[:1]
        replies = []

        def ask() -> None:
            with client.stream("POST", "/v1/chat/completions", json=body) as response:
                for line in response.iter_lines():
                    replies.append(line)
                    if len(replies) == 1:
                        process.send_signal(signal.SIGTERM)

        body = {"messages": [{"role": "user", "content": question.text}], "n": 4, "stream": True}
        asking = threading.Thread(target=ask)
        asking.start()
        asking.join(120)
        assert replies[-2:] == ["data: [DONE]", ""]
        assert process.wait(90) == 0
    endings = [json.loads(line[6:]).get("searchparty") for line in replies if line.startswith("data: {")]
    assert len([ending for ending in endings if ending]) == 4


BAD: list[tuple[list[str], str]] = [
    (["--team", "nobody", "--model", "tiny"], "team nobody: no such team"),
    (["--team", "direct"], "model: is missing"),
    (["--team", "rag", "--model", "tiny"], "index: the team rag searches; give --index DIR"),
    (["--team", "direct", "--model", "scripted:default", "--resume"], "give --record RUN, or remove them"),
    (["--team", "direct", "--model", "scripted:default", "--require-token"], "SEARCHPARTY_SERVE_TOKEN"),
    (["--team", "direct", "--model", "scripted:default", "--port", "99999"], "a port is a number from 0 to 65535"),
    (["--team", "planned", "--model", "scripted:default", "team.executors=[RA, AG, XY]"], "executors names XY"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "line"), BAD)
def test_bad_input_is_one_clear_line(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SEARCHPARTY_SERVE_TOKEN", raising=False)
    assert main(["serve", "--port", "0", *words]) == 2
    [said] = capsys.readouterr().err.splitlines()
    assert line in said


def test_a_port_in_use_is_said_before_a_model_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    with bind("127.0.0.1", 0) as taken:
        words = ["serve", "--team", "direct", "--model", "tiny", "--port", str(taken.getsockname()[1])]
        assert main(words) == 2
    assert "port is in use" in capsys.readouterr().err
