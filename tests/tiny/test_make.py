import dataclasses
import json
from pathlib import Path

import pytest

from searchparty.learning.sft import imitation_signals
from searchparty.models.bytes import ByteTokenizer
from searchparty.models.loading import load_model
from searchparty.tiny.course import full_course
from searchparty.tiny.lessons import play_lesson
from searchparty.tiny.make import main
from searchparty.tiny.schooling import with_all_tokens


def test_make_writes_a_model_that_loads_and_its_figures(tmp_path: Path) -> None:
    target = tmp_path / "made"
    assert main(["-o", str(target), "--effort", "0.002", "--questions", "2"]) == 0
    model = load_model(str(target), device="cpu")
    assert model.context_tokens == 1024
    figures = json.loads((target / "figures.json").read_text("utf-8"))
    assert set(figures["held_out"]["temperature 1"]) == {"direct", "rag", "chained", "hierarchical"}
    assert len(figures["losses"]) == 3
    assert list(tmp_path.iterdir()) == [target]


def test_make_leaves_a_folder_alone_that_holds_something(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "note.txt").write_text("mine")
    assert main(["-o", str(tmp_path)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


@pytest.mark.parametrize("effort", ["0", "-1", "nan"])
def test_an_effort_that_teaches_nothing_is_refused(tmp_path: Path, effort: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-o", str(tmp_path / "made"), "--effort", effort]) == 2
    assert "must be above 0" in capsys.readouterr().err


def test_a_lesson_is_the_same_each_time_and_no_two_of_its_worlds_are_alike() -> None:
    lesson = dataclasses.replace(full_course().playing, worlds=2, entities=60, questions=10)
    first, again = ([episode.question for world in play_lesson(lesson, ByteTokenizer()) for episode in world] for _ in "ab")
    assert first == again
    one, other = ({episode.question for episode in world} for world in play_lesson(lesson, ByteTokenizer()))
    assert not one & other


def test_lessons_have_no_world_in_common() -> None:
    course = full_course()
    seeds = [
        seed
        for lesson in (*course.reading, course.playing)
        for seed in range(lesson.first_seed, lesson.first_seed + lesson.worlds)
    ]
    assert len(set(seeds)) == len(seeds)


def test_reading_trains_every_token_that_something_precedes() -> None:
    (episodes, *_) = play_lesson(full_course(0.001).playing, ByteTokenizer())
    signal = imitation_signals(episodes)[0]
    assert not signal.trainable_T.all()
    read = with_all_tokens(signal)
    assert not read.trainable_T[0] and read.trainable_T[1:].all()
