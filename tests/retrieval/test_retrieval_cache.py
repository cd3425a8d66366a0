"""Recording and replaying: the same hits, without the retriever, from several threads and processes, after any kill."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from retrieval_factories import FunctionRetriever

from searchparty.cli.main import main
from searchparty.errors import Failure, FailureKind, ServiceFailure, UserError
from searchparty.retrieval.cache import CacheMode, RecordingRetriever, ReplayedRetriever, open_through_cache
from searchparty.retrieval.cache_file import CacheFile
from searchparty.retrieval.remote import RemoteRetriever
from searchparty.retrieval.types import Hit, Passage, Retriever


def recording(path: Path, retriever: Retriever, *, ask_again: bool = False) -> RecordingRetriever:
    return RecordingRetriever(retriever, CacheFile(path, create=True), ask_again=ask_again)


def replayed(path: Path, identity: str | None = None) -> ReplayedRetriever:
    return ReplayedRetriever(CacheFile(path, create=False), identity)


class Fixed:
    """A retriever that answers every query with the same hits."""

    def __init__(self, hits: list[Hit], identity: str = "fixed") -> None:
        self.hits = hits
        self.identity = identity

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [list(self.hits) for _ in queries]


def one_hit(passage_id: str, score: float = 1.0) -> list[Hit]:
    return [Hit(Passage(passage_id, "", ""), 1, score)]


def test_what_was_recorded_is_replayed_without_the_retriever(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "cache.sqlite"
    recorder = recording(path, FunctionRetriever())
    answered = recorder.search(["x", "y", "x"], 3)
    recorder.close()
    replay = replayed(path)
    assert (replay.identity, replay.search(["x", "y", "x"], 3)) == ("function", answered)


def test_only_what_is_missing_is_asked(tmp_path: Path) -> None:
    retriever = FunctionRetriever()
    recorder = recording(tmp_path / "cache", retriever)
    recorder.search(["x"], 3)
    recorder.search(["y", "x", "y"], 3)
    recorder.search(["x"], 5)
    assert retriever.batches == [["x"], ["y"], ["x"]]


def test_recording_again_replaces_what_was_recorded(tmp_path: Path) -> None:
    recording(tmp_path / "cache", Fixed(one_hit("old"))).search(["q"], 3)
    recording(tmp_path / "cache", Fixed(one_hit("new")), ask_again=True).search(["q"], 3)
    assert replayed(tmp_path / "cache").search(["q"], 3) == [one_hit("new")]


def test_the_first_of_two_recorded_answers_stays_and_is_what_both_are_given(tmp_path: Path) -> None:
    second = CacheFile(tmp_path / "cache", create=True)

    def record_meanwhile(queries: Sequence[str]) -> None:
        second.keep("function", 3, {"q": one_hit("first")}, replace=False)

    recorder = recording(tmp_path / "cache", FunctionRetriever(record_meanwhile))
    assert recorder.search(["q"], 3) == [one_hit("first")]


def test_a_query_that_was_never_recorded_is_one_clear_error(tmp_path: Path) -> None:
    recording(tmp_path / "cache", FunctionRetriever()).search(["x"], 3)
    for queries, k in ((["x", "other"], 3), (["x"], 4)):
        with pytest.raises(UserError, match="no recorded answer") as caught:
            replayed(tmp_path / "cache").search(queries, k)
        assert len(caught.value.lines) == 1 and f"k = {k}" in str(caught.value)


def test_a_failure_is_passed_on_and_not_recorded(tmp_path: Path) -> None:
    def fail(queries: Sequence[str]) -> None:
        raise ServiceFailure(Failure("retriever", FailureKind.TIMEOUT, "slow"))

    with pytest.raises(ServiceFailure, match="slow"):
        recording(tmp_path / "cache", FunctionRetriever(fail)).search(["x"], 3)
    assert CacheFile(tmp_path / "cache", create=False).contents().answers == {}


def test_an_empty_answer_is_an_answer(tmp_path: Path) -> None:
    recording(tmp_path / "cache", Fixed([])).search(["x"], 3)
    assert replayed(tmp_path / "cache").search(["x"], 3) == [[]]


def test_retrievers_are_kept_apart_and_one_must_be_named(tmp_path: Path) -> None:
    for name in ("one", "two"):
        recording(tmp_path / "cache", Fixed(one_hit(name), name)).search(["q"], 3)
    assert replayed(tmp_path / "cache", "two").search(["q"], 3) == [one_hit("two")]
    for identity in (None, "three"):
        with pytest.raises(UserError, match="'one' and 'two'"):
            replayed(tmp_path / "cache", identity)


def test_a_server_that_does_not_say_who_it_is_is_not_recorded(tmp_path: Path) -> None:
    class Nameless(Fixed):
        identity_known = False

    with pytest.raises(ServiceFailure, match="cannot be recorded"):
        recording(tmp_path / "cache", Nameless(one_hit("a"))).search(["q"], 3)


def test_a_server_that_is_down_fails_as_it_would_without_a_cache(tmp_path: Path) -> None:
    with pytest.raises(ServiceFailure, match="unreachable"):
        recording(tmp_path / "cache", RemoteRetriever("http://127.0.0.1:9")).search(["q"], 3)


def test_a_passage_that_many_answers_name_is_kept_once(tmp_path: Path) -> None:
    recorder = recording(tmp_path / "cache", Fixed(one_hit("same")))
    recorder.search([f"query {number}" for number in range(50)], 3)
    contents = CacheFile(tmp_path / "cache", create=False).contents()
    assert (contents.answers, contents.passages) == ({"fixed": 50}, 1)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(query=TEXT, texts=st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=4), score=st.floats(allow_nan=False))
def test_any_text_and_any_score_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, query: str, texts: list[tuple[str, str, str]], score: float
) -> None:
    path = tmp_path_factory.mktemp("cache") / "cache"
    hits = [Hit(Passage(*fields), rank, score) for rank, fields in enumerate(texts, start=1)]
    recording(path, Fixed(hits)).search([query], 7)
    assert replayed(path).search([query], 7) == [hits]


def test_threads_share_one_cache(tmp_path: Path) -> None:
    recorder = recording(tmp_path / "cache", FunctionRetriever())
    queries = [f"query {number % 20}" for number in range(200)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda query: recorder.search([query], 3), queries))
    assert [hits[0].passage.id for [hits] in found] == queries
    assert CacheFile(tmp_path / "cache", create=False).contents().answers == {"function": 20}


_RECORD_FOREVER = """
import sys
from pathlib import Path
from searchparty.retrieval.cache import RecordingRetriever
from searchparty.retrieval.cache_file import CacheFile
from searchparty.retrieval.types import Hit, Passage
class Echo:
    identity = "echo"
    def search(self, queries, k):
        return [[Hit(Passage(query, "", query * 50), 1, 1.0)] for query in queries]
recorder = RecordingRetriever(Echo(), CacheFile(Path(sys.argv[1]), create=True))
for number in range(int(sys.argv[3])):
    recorder.search([f"{sys.argv[2]} {number}"], 3)
    print(number, flush=True)
"""


def recorder_process(path: Path, name: str, searches: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _RECORD_FOREVER, str(path), name, str(searches)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_share_one_cache(tmp_path: Path) -> None:
    processes = [recorder_process(tmp_path / "cache", name, 30) for name in ("a", "b", "c")]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert CacheFile(tmp_path / "cache", create=False).contents().answers == {"echo": 90}
    for process in processes:
        process.communicate()


def test_a_process_that_is_killed_leaves_every_answer_it_had_given(tmp_path: Path) -> None:
    with recorder_process(tmp_path / "cache", "q", 100_000) as process:
        assert process.stdout is not None
        for _ in range(40):
            last = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
    found = replayed(tmp_path / "cache").search([f"q {number}" for number in range(last + 1)], 3)
    assert [hits[0].passage.id for hits in found] == [f"q {number}" for number in range(last + 1)]


def test_a_cache_is_one_file_that_can_be_copied(tmp_path: Path) -> None:
    recorder = recording(tmp_path / "run" / "cache", FunctionRetriever())
    expected = recorder.search(["x"], 3)
    recorder.close()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["cache"]
    shutil.copy(tmp_path / "run" / "cache", tmp_path / "copy")
    (tmp_path / "copy").chmod(0o444)
    assert replayed(tmp_path / "copy").search(["x"], 3) == expected


def test_what_is_no_cache_is_a_user_error(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, and longer than the header of one" * 10)
    other = sqlite3.connect(tmp_path / "other")
    other.execute("CREATE TABLE mine (a)")
    other.close()
    later = CacheFile(tmp_path / "later", create=True)
    later.close()
    database = sqlite3.connect(tmp_path / "later")
    database.execute("PRAGMA user_version = 9")
    database.close()
    for name, fault in (
        ("text", "cannot be used"),
        ("other", "is not a cache"),
        ("later", "version 9"),
        (".", "cannot be used"),
    ):
        with pytest.raises(UserError, match=fault):
            CacheFile(tmp_path / name, create=True)
    for name, fault in (("missing", "no such cache"), ("other", "is not a cache"), (".", "no such cache")):
        with pytest.raises(UserError, match=fault):
            CacheFile(tmp_path / name, create=False)
    assert not (tmp_path / "missing").exists()


def test_a_replay_does_not_open_the_retriever(tmp_path: Path) -> None:
    open_through_cache(FunctionRetriever, tmp_path / "cache", CacheMode.RECORD).search(["x"], 3)

    def refuse() -> Retriever:
        raise AssertionError("opened")

    assert open_through_cache(refuse, tmp_path / "cache", CacheMode.REPLAY).search(["x"], 3)


def test_the_command_says_whose_answers_a_cache_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording(tmp_path / "cache", FunctionRetriever()).search(["x", "y"], 3)
    assert main(["retriever", "cache", str(tmp_path / "cache")]) == 0
    assert capsys.readouterr().out.split() == ["2", "answers", "of", "function", "2", "different", "passages"]
    assert main(["retriever", "cache", str(tmp_path / "missing")]) == 2
