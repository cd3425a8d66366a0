"""Episodes on disk: they come back equal, survive a killed writer, and unknown content is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playing import FixedRetriever, good_lines, play_lines
from searchparty.episodes.store import EpisodeWriter, read_episodes
from searchparty.episodes.types import Episode, StopReason
from searchparty.errors import Failure, FailureKind, UserError
from searchparty.teams.chained import Chained
from searchparty.teams.hierarchical import Hierarchical


def write(path: Path, *episodes: Episode) -> None:
    with EpisodeWriter(path) as writer:
        for episode in episodes:
            writer.write(episode)


def some_episode(text: str = "Paris is the capital.") -> Episode:
    return play_lines(Hierarchical(), good_lines(), FixedRetriever((text,)))


@settings(max_examples=40)
@given(st.text(max_size=60).filter(lambda text: not any("\ud800" <= character <= "\udfff" for character in text)))
def test_an_episode_comes_back_equal_whatever_its_passages_say(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("run") / "eval.jsonl"
    episode = some_episode(text)
    write(path, episode)
    assert list(read_episodes(path)) == [episode]


def test_failures_come_back_equal(tmp_path: Path) -> None:
    failure = Failure("model", FailureKind.TIMEOUT, "no reply in 5 s", 3)
    episode = play_lines(Chained(), good_lines(answerer=[failure]))
    write(tmp_path / "eval.jsonl", episode)
    (again,) = read_episodes(tmp_path / "eval.jsonl")
    assert again == episode
    assert again.stop_reason is StopReason.MODEL_FAILED
    assert again.transcript("answerer.1").calls[0].failure == failure


def test_writing_appends_and_never_changes_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "eval.jsonl"
    write(path, some_episode("first"))
    before = path.read_bytes()
    write(path, some_episode("second"))
    assert path.read_bytes()[: len(before)] == before
    assert len(list(read_episodes(path))) == 2


@pytest.mark.parametrize("torn", [b'{"question_key": "nq', b"{", b"x" * 200_000])
def test_a_torn_last_line_is_removed_when_the_file_is_opened_again(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "eval.jsonl"
    write(path, some_episode())
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert len(list(read_episodes(path, allow_torn_end=True))) == 1
    with pytest.raises(UserError, match=r"eval\.jsonl:2: the line is cut short"):
        list(read_episodes(path))
    EpisodeWriter(path).close()
    assert path.read_bytes() == whole


def test_a_file_of_nothing_but_a_torn_line_becomes_empty(tmp_path: Path) -> None:
    path = tmp_path / "eval.jsonl"
    path.write_bytes(b'{"torn": ')
    EpisodeWriter(path).close()
    assert path.read_bytes() == b""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 99}, "eval.jsonl:2: schema version 99"),
        ({"mood": "good"}, "eval.jsonl:2: mood"),
        ({"stop_reason": "bored"}, "eval.jsonl:2: stop_reason"),
        ({"steps": "many"}, "eval.jsonl:2: steps"),
    ],
)
def test_the_reader_refuses_what_it_does_not_know_and_names_the_line(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "eval.jsonl"
    write(path, some_episode())
    record = json.loads(path.read_text()) | change
    with path.open("a") as stream:
        stream.write(json.dumps(record) + "\n")
    with pytest.raises(UserError, match=message):
        list(read_episodes(path))


def test_an_unknown_field_deep_inside_is_refused_too(tmp_path: Path) -> None:
    path = tmp_path / "eval.jsonl"
    write(path, some_episode())
    record = json.loads(path.read_text())
    record["agents"][0]["spans"][0]["colour"] = "red"
    path.write_text(json.dumps(record) + "\n")
    with pytest.raises(UserError, match=r"agents\.0\.spans\.0\.colour"):
        list(read_episodes(path))


def test_two_writers_cannot_share_a_file(tmp_path: Path) -> None:
    with EpisodeWriter(tmp_path / "eval.jsonl"), pytest.raises(UserError, match="another process"):
        EpisodeWriter(tmp_path / "eval.jsonl")


def test_a_writer_killed_at_any_instant_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "eval.jsonl"
    script = (
        "import sys; sys.path[:0] = sys.argv[2:];"
        "from test_store import some_episode, EpisodeWriter; from pathlib import Path;"
        "writer = EpisodeWriter(Path(sys.argv[1])); episode = some_episode('x' * 50000)\n"
        "while True: writer.write(episode)"
    )
    here = Path(__file__).parent
    process = subprocess.Popen([sys.executable, "-c", script, str(path), str(here), str(here.parent)])
    deadline = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size > 2_000_000) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.wait()
    EpisodeWriter(path).close()
    episodes = list(read_episodes(path))
    assert len(episodes) > 1
    assert path.read_bytes().endswith(b"\n")
