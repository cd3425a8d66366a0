"""The commands `index`, `search` and `retriever`, as a person runs them."""

from __future__ import annotations

import json
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from retrieval_factories import DATA, build, write_corpus
from running_server import running
from stub_server import Reply, stub_server

from searchparty.cli.main import main
from searchparty.config.retrieval import SourceSpec
from searchparty.evaluation.retrievers import open_choice, passages_of, plan_of, plan_with_device
from searchparty.http_server.listening import bind
from searchparty.retrieval.types import Passage


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands") / "index"
    assert main(["index", "build", str(DATA / "passages.jsonl"), "-o", str(folder), "--retriever", "bm25"]) == 0
    return folder


def test_build_prints_passages_time_and_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "build", str(DATA / "wiki18.jsonl"), "-o", str(tmp_path / "index")]) == 0
    assert re.search(r"index: 5 passages indexed in \d+\.\d s, \d+\.\d MB\n", capsys.readouterr().out)


def test_info_describes_the_index(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "info", str(index)]) == 0
    assert re.search(r"^passages +220$", capsys.readouterr().out, re.MULTILINE)
    assert main(["index", "info", str(index), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passages"] == 220


def test_search_shows_hits_for_a_person(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", str(index), "spouse of the director of Up, Down, Fragile", "-k", "1"]) == 0
    assert re.match(r"1\. \d+\.\d{3}  \[p\d+\]  Up, Down, Fragile\n   Up, Down, Fragile", capsys.readouterr().out)


def test_search_prints_json(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", str(index), "director Fragile", "-k", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["query"] == "director Fragile"
    assert found["retriever"].startswith("bm25(")
    assert [hit["rank"] for hit in found["hits"]] == [1, 2]
    assert set(found["hits"][0]) == {"rank", "score", "id", "title", "text"}


def test_search_asks_a_server_in_the_dialect_that_was_named(capsys: pytest.CaptureFixture[str]) -> None:
    reply = json.dumps({"answers": [["7\tTitle\nabout it"]]}).encode()
    with stub_server(Reply(body=reply)) as stub:
        assert main(["search", stub.url, "query", "--dialect", "queries"]) == 0
    assert capsys.readouterr().out == "1. 1.000  [7]  Title\n   about it\n"


def test_search_says_that_nothing_was_found(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["search", str(index), "zzzunknown"]) == 0
    assert capsys.readouterr().out.startswith("no hits")


def test_a_passage_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build(tmp_path, [Passage("a\x07", "\x1b[31mred", "word \x1b]0;title\x07 \x9b2J \u202e end")])
    assert main(["search", str(tmp_path / "index"), "word"]) == 0
    shown = capsys.readouterr().out
    assert "red" in shown
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["index", "build", "nowhere.jsonl", "-o", "OUT"], "nowhere.jsonl: no such file"),
        (["index", "build", "EMPTY", "-o", "OUT"], "is empty"),
        (["index", "build", "DUPLICATES", "-o", "OUT"], ":2: passage id 'a' was already used on line 1"),
        (["index", "build", "BROKEN", "-o", "OUT"], ":2: not valid JSON"),
        (["index", "build", "CORPUS", "-o", "OUT", "--format", "dpr"], ":1: 3 tab-separated cells are needed"),
        (["index", "build", "CORPUS", "-o", "OUT", "--format", "xml"], "invalid choice: 'xml'"),
        (["index", "build", "CORPUS", "-o", "OUT", "--b", "2"], "k1 must be at least 0"),
        (["index", "info", "OUT"], "no such index folder"),
        (["search", "OUT", "query"], "no such index folder"),
        (["search", "http://", "query"], "not an address"),
        (["search", "OUT", "query", "-k", "0"], "a whole number from 1"),
        (["retriever", "serve", "OUT"], "no such index folder"),
        (["retriever", "serve", "OUT", "--topk", "0"], "--topk 0"),
        (["retriever", "serve", "no-such-plan.yaml"], "no-such-plan.yaml"),
        (["retriever", "serve", "http://127.0.0.1:1", "--device", "cuda"], "is a server, which has"),
    ],
)
def test_bad_input_ends_with_2_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], fault: str
) -> None:
    write_corpus(tmp_path / "CORPUS", [Passage("a", "", "x")])
    write_corpus(tmp_path / "DUPLICATES", [Passage("a", "", "x"), Passage("a", "", "y")])
    (tmp_path / "EMPTY").touch()
    (tmp_path / "BROKEN").write_text('{"id": "a", "text": "x"}\n{')
    before = sorted(path.name for path in tmp_path.iterdir())
    try:
        code = main([str(tmp_path / argument) if argument.isupper() else argument for argument in arguments])
    except SystemExit as ending:
        code = ending.code
    assert code == 2
    assert fault in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_service_that_is_down_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    with bind("127.0.0.1", 0) as closed:
        port = closed.getsockname()[1]
    assert main(["search", f"http://127.0.0.1:{port}", "query"]) == 1
    assert "retriever: unreachable" in capsys.readouterr().err


def test_a_port_in_use_ends_with_2(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with bind("127.0.0.1", 0) as taken:
        assert main(["retriever", "serve", str(index), "--port", str(taken.getsockname()[1])]) == 2
    assert "port is in use" in capsys.readouterr().err


@contextmanager
def serving(index: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`retriever serve` as a process of its own, and the address that it prints."""
    command = [sys.executable, "-m", "searchparty.cli.main", "retriever", "serve", str(index), "--port", "0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert select.select([process.stdout], [], [], 20)[0]
            line = process.stdout.readline()
            match = re.fullmatch(r"serving 220 passages at (http://127\.0\.0\.1:\d+)/retrieve \(stop with Ctrl-C\)\n", line)
            assert match, line
            yield process, match[1]
        finally:
            process.kill()


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_the_server_answers_and_stops_at_a_signal(index: Path, sent: signal.Signals, code: int) -> None:
    with serving(index) as (process, address):
        reply = httpx.post(f"{address}/retrieve", json={"queries": ["director"], "topk": 2}, trust_env=False)
        assert len(reply.json()["result"][0]) == 2
        process.send_signal(sent)
        _, errors = process.communicate(timeout=20)
        assert process.returncode == code
        assert "Traceback" not in errors


@pytest.mark.parametrize("options", [(), ("--workers", "2")])
def test_a_plan_is_served_as_it_searches(index: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    other = tmp_path / "other"
    assert main(["index", "build", str(DATA / "passages.jsonl"), "-o", str(other), "--b", "1"]) == 0
    plan = tmp_path / "rrf.yaml"
    plan.write_text(f"sources: [{index}, {other}]\nfusion: reciprocal-rank\none_per_title: true\n")
    wanted = open_choice(str(plan))
    with serving(plan, *options) as (_, address):
        reply = httpx.post(f"{address}/search", json={"version": 1, "queries": ["director"], "k": 5}, trust_env=False)
        health = httpx.get(f"{address}/health", trust_env=False).json()
    [hits] = wanted.search(["director"], 5)
    assert [(hit["id"], hit["score"]) for hit in reply.json()["results"][0]] == [(hit.passage.id, hit.score) for hit in hits]
    assert (health["identity"], health["passages"]) == (wanted.identity, 220)


def test_a_server_of_a_server_does_not_know_the_number_of_passages(index: Path) -> None:
    with serving(index) as (_, behind):
        assert passages_of(plan_of(behind)) is None
        with running(open_choice(behind, dialect="native"), None) as address:
            reply = httpx.post(f"{address}/retrieve", json={"queries": ["director"], "topk": 2}, trust_env=False)
            assert httpx.get(f"{address}/health", trust_env=False).json()["passages"] is None
    assert len(reply.json()["result"][0]) == 2


def test_a_device_is_only_for_a_dense_index_named_alone(
    index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.yaml"
    plan.write_text(f"sources: [{index}, {index}]\n")
    assert main(["retriever", "serve", str(plan), "--device", "cuda"]) == 2
    assert f"{plan}: names its sources and their devices itself; write device: cuda there" in capsys.readouterr().err
    assert main(["retriever", "serve", str(index), "--port", "0", "--device", "cuda"]) == 2
    assert "a model, a device or a way to search means nothing" in capsys.readouterr().err
    assert plan_with_device("dense", "cuda:1").sources == [SourceSpec(index="dense", device="cuda:1")]
