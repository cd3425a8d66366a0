"""A world as a folder, and the command that makes one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from world_factories import small_world

from searchparty.cli.main import main
from searchparty.errors import UserError
from searchparty.questions import read_questions
from searchparty.retrieval.corpus import read_corpus
from searchparty.world.storing import load_world, write_world

SMALL = ["--entities", "80", "--questions", "24", "--dev", "6", "--test", "10"]


def make(folder: Path, *options: str) -> int:
    return main(["world", "make", "-o", str(folder), *SMALL, *options])


def test_a_world_is_read_back_from_its_description(tmp_path: Path) -> None:
    world = small_world(seed=7, hops=(1, 2, 3, 0), ambiguity=0.5)
    write_world(world, tmp_path / "w")
    assert load_world(tmp_path / "w") == world
    assert load_world(tmp_path / "w" / "world.json") == world


def test_questions_and_passages_are_read_by_the_ordinary_readers(tmp_path: Path) -> None:
    world = small_world()
    write_world(world, tmp_path / "w")
    for split, questions in world.questions.items():
        read = read_questions(tmp_path / "w" / f"questions-{split}.jsonl")
        assert tuple(read) == questions
        assert [question.extra for question in read] == [question.extra for question in questions]
    assert tuple(passage for _, passage in read_corpus(tmp_path / "w" / "corpus.jsonl")) == world.passages


def test_the_description_counts_what_the_files_hold(tmp_path: Path) -> None:
    write_world(small_world(), tmp_path / "w")
    described = json.loads((tmp_path / "w" / "world.json").read_text())
    assert described["parameters"]["entities"] == 80
    assert described["counts"]["questions"] == {"train": 24, "dev": 6, "test": 10}
    assert described["counts"]["passages"] == len((tmp_path / "w" / "corpus.jsonl").read_text().splitlines())
    assert sum(described["counts"]["hops"].values()) == 40


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"schema_version": 99}, "schema version 99"),
        ({"digest": "0"}, "makes another world"),
        ({"parameters": {"entities": 80, "colour": 1, "hops": [1, 1, 1, 1]}}, "colour"),
        ({"parameters": {}}, "hops"),
    ],
)
def test_a_description_that_does_not_fit_is_refused_by_name(tmp_path: Path, change: dict[str, object], fault: str) -> None:
    write_world(small_world(), tmp_path / "w")
    file = tmp_path / "w" / "world.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(UserError, match=f"{re.escape(str(file))}: .*{fault}"):
        load_world(tmp_path / "w")


def test_the_command_makes_equal_files_from_equal_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make(tmp_path / "a", "--seed", "5") == make(tmp_path / "b", "--seed", "5") == 0
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["corpus.jsonl", "questions-dev.jsonl", "questions-test.jsonl", "questions-train.jsonl", "world.json"]
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)
    assert "80 entities" in capsys.readouterr().out


def test_an_existing_world_is_kept_unless_it_may_be_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make(tmp_path / "w") == 0
    before = (tmp_path / "w" / "corpus.jsonl").read_bytes()
    assert make(tmp_path / "w", "--seed", "1") == 2
    assert "already exists; choose another folder or add --overwrite" in capsys.readouterr().err
    assert (tmp_path / "w" / "corpus.jsonl").read_bytes() == before
    assert make(tmp_path / "w", "--seed", "1", "--overwrite") == 0
    assert (tmp_path / "w" / "corpus.jsonl").read_bytes() != before
    assert [path.name for path in tmp_path.iterdir()] == ["w"]


def test_overwriting_leaves_a_folder_alone_that_is_no_world(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "thesis.txt").write_text("years of work")
    assert make(tmp_path / "w", "--overwrite") == 2
    assert "is not a world" in capsys.readouterr().err
    assert (tmp_path / "w" / "thesis.txt").exists()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--entities", "5"], "entities: 5 is out of range; choose a value from 20 to 20000"),
        (["--ambiguity", "1.5"], "ambiguity: 1.5 is out of range"),
        (["--hops", "0,0,0,0"], "hops: .* four weights are needed"),
        (["--hops", "1,2"], "four weights are needed"),
        (["--entities", "20", "--questions", "900"], "give too few"),
    ],
)
def test_bad_options_end_with_2_one_line_and_nothing_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], fault: str
) -> None:
    assert make(tmp_path / "w", *options) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert re.search(fault, line)
    assert not list(tmp_path.iterdir())


def test_words_that_are_no_weights_are_refused_by_the_parser(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        make(tmp_path / "w", "--hops", "many")
    assert ending.value.code == 2
    assert "such as 3,4,2,1" in capsys.readouterr().err
