"""Protocols: what they ask, what they fill in and refuse, and that every result names them."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playing import good_lines, play_lines
from searchparty.cli.main import main
from searchparty.config.recipe import EvalRecipe
from searchparty.episodes.types import StopReason
from searchparty.errors import UserError
from searchparty.evaluation.protocols.choosing import chosen_questions
from searchparty.evaluation.protocols.following import describe_protocol, follow_protocol
from searchparty.evaluation.protocols.types import SHIPPED, Protocol, load_protocol
from searchparty.evaluation.scorers import scorer_named
from searchparty.questions import read_questions, write_questions
from searchparty.questions.types import Question
from searchparty.teams.chained import Chained
from searchparty.teams.registry import find_team

SMALL = """
name: small
version: 1
source: a test
datasets:
  nq: {split: test, questions: 3}
  named: {ids: [n2, official]}
samples: 2
sampling: {temperature: 0.0, max_tokens: 64}
scorer: squad
metric: exact_match
retriever: e5
passages: 3
budgets:
  chained: {max_steps: 4}
"""
HERE = Path("questions.jsonl")


def pool() -> list[Question]:
    """Ten questions of one set and three of another."""
    nq = [Question(f"q{number}", f"what is {number}?", ("Paris",), "nq", split="test") for number in range(10)]
    named = [Question("n1", "who?", ("he",), "named", official_id="official"), Question("n2", "where?", ("there",), "named")]
    return [*nq, Question("x", "which?", ("this",), "nq", split="train"), *named]


@pytest.fixture
def protocol_file(tmp_path: Path) -> Path:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    return file


@pytest.fixture
def small(protocol_file: Path) -> Protocol:
    return load_protocol(str(protocol_file))


@pytest.mark.parametrize("name", SHIPPED)
def test_what_a_shipped_protocol_names_exists(name: str) -> None:
    protocol = load_protocol(name)
    assert protocol.name == name and scorer_named(protocol.scorer)
    for team, options in protocol.budgets.items():
        assert options.keys() <= {field.name for field in fields(find_team(team))}


@pytest.mark.parametrize(
    ("budgets", "fault"),
    [
        ("chained: {max_stpes: 4}", "budgets.chained: the team has no option max_stpes; it has .*max_steps"),
        ("chaned: {max_steps: 4}", "chaned"),
    ],
)
def test_a_budget_that_no_team_would_keep_is_refused(protocol_file: Path, budgets: str, fault: str) -> None:
    protocol_file.write_text(SMALL.replace("chained: {max_steps: 4}", budgets))
    with pytest.raises(UserError, match=fault):
        load_protocol(str(protocol_file))


@pytest.mark.parametrize(
    ("name", "sets", "questions"), [("multiagent-opd", 7, 5000), ("mao-arag", 7, 6125), ("search-r1", 7, 51713)]
)
def test_shipped_protocols_ask_as_many_questions_as_the_papers(name: str, sets: int, questions: int) -> None:
    datasets = load_protocol(name).datasets
    assert (len(datasets), sum(one.questions or 0 for one in datasets.values())) == (sets, questions)


def test_the_chained_team_has_the_four_searches_of_search_r1_and_an_answer() -> None:
    team = Chained(**load_protocol("search-r1").budgets["chained"])
    lines = good_lines(searcher=["<search>x</search>"] * 4 + ["<report>Paris</report>"])
    episode = play_lines(team, lines)
    assert (len(episode.retrievals), episode.stop_reason) == (4, StopReason.ANSWERED)
    assert play_lines(team, good_lines(searcher=["<search>x</search>"] * 5)).stop_reason is not StopReason.ANSWERED


def test_questions_are_chosen_by_split_and_number_or_by_either_kind_of_id(small: Protocol) -> None:
    chosen = chosen_questions(small, pool(), HERE)
    assert Counter(one.dataset for one in chosen) == {"nq": 3, "named": 2}
    assert [one.id for one in chosen if one.dataset == "named"] == ["n2", "n1"]
    assert "nq/x" not in [one.key for one in chosen]


@given(st.randoms(use_true_random=False))
def test_the_choice_depends_neither_on_the_order_of_the_file_nor_on_ids_case_or_punctuation(shuffler: random.Random) -> None:
    spec = load_protocol("search-r1").datasets["nq"].model_copy(update={"questions": 4})
    protocol = load_protocol("search-r1").model_copy(update={"datasets": {"nq": spec}})
    questions = [one for one in pool() if one.dataset == "nq"]
    other = [replace(one, id=f"row {number}", text=one.text.upper() + " ") for number, one in enumerate(questions)]
    shuffler.shuffle(other)
    first, second = (chosen_questions(protocol, some, HERE) for some in (questions, other))
    assert [one.text for one in first] == [one.text.lower().strip() for one in second]


def test_a_file_without_enough_questions_is_refused_with_a_line_for_each_set(small: Protocol) -> None:
    with pytest.raises(UserError) as error:
        chosen_questions(small, pool()[:2], HERE)
    assert "has 2 of the 3 questions of nq, split test" in error.value.lines[0]
    assert "lacks n2, official of named" in error.value.lines[1]


def eval_recipe(protocol: Path, **settings: object) -> EvalRecipe:
    given_ = {"team": "chained", "model": "scripted:default", "questions": "q.jsonl", "protocol": str(protocol)}
    return EvalRecipe.model_validate(given_ | settings)


def test_a_protocol_fills_in_what_the_recipe_leaves_open_and_twice_is_as_once(protocol_file: Path) -> None:
    recipe = follow_protocol(eval_recipe(protocol_file))
    assert (recipe.samples, recipe.sampling.temperature, recipe.sampling.max_tokens, recipe.scorer) == (2, 0.0, 64, "squad")
    assert recipe.team.options == {"passages": 3, "candidates": 1, "max_steps": 4}
    assert follow_protocol(recipe) == recipe
    direct = follow_protocol(eval_recipe(protocol_file, team="direct"))
    assert "passages" not in direct.team.options


def test_a_recipe_that_contradicts_its_protocol_is_refused_with_a_line_for_each_key(protocol_file: Path) -> None:
    contrary = eval_recipe(
        protocol_file,
        team={"name": "chained", "passages": 5},
        samples=1,
        limit=3,
        sampling={"temperature": 0.5, "max_tokens": 64},
    )
    with pytest.raises(UserError) as error:
        follow_protocol(contrary)
    assert [line.partition(":")[0] for line in error.value.lines] == [
        "team.passages",
        "sampling.temperature",
        "samples",
        "limit",
    ]
    assert "is 5, but protocol small says 3" in error.value.lines[0]


def test_what_is_said_as_the_protocol_says_it_is_no_contradiction(protocol_file: Path) -> None:
    assert follow_protocol(eval_recipe(protocol_file, samples=2)) == follow_protocol(eval_recipe(protocol_file))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("samples: 2", "samples: two"), ("questions: 3", "questoins: 3"), ("questions: 3", "questions: 3, ids: [a]"),
    ],
)  # fmt: skip
def test_a_faulty_protocol_file_is_one_line_a_fault(protocol_file: Path, change: str, fault: str) -> None:
    protocol_file.write_text(SMALL.replace(change, fault))
    with pytest.raises(UserError, match=r"small\.yaml: (samples|datasets\.nq)"):
        load_protocol(str(protocol_file))


def test_an_unknown_protocol_is_refused_with_those_there_are() -> None:
    with pytest.raises(UserError, match="there are multiagent-opd, mao-arag, search-r1"):
        load_protocol("search-r2")


def evaluated(protocol: Path, folder: Path, *words: str) -> int:
    file = protocol.parent / "questions.jsonl"
    rows = [
        {"id": one.id, "question": one.text, "golden_answers": one.golden_answers, "dataset": one.dataset}
        | ({"split": one.split} if one.split else {}) | ({"official_id": one.official_id} if one.official_id else {})
        for one in pool()
    ]  # fmt: skip
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return main(
        ["eval", "--team", "direct", "--model", "scripted:default", "--questions", str(file), "--protocol", str(protocol),
         "-o", str(folder), *words]
    )  # fmt: skip


def test_every_result_names_its_protocol_questions_versions_and_decoding(
    protocol_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluated(protocol_file, tmp_path / "run") == 0
    assert "protocol small, version 1" in capsys.readouterr().out
    found = json.loads((tmp_path / "run/summary.json").read_text())
    assert found["quality"]["macro"]["questions"] == 5 and found["samples"] == 2
    origin = found["provenance"]
    assert origin["protocol"]["sha256"] == load_protocol(str(protocol_file)).sha256
    assert origin["protocol"]["departures"] == []
    environment = json.loads((tmp_path / "run/environment.json").read_text())
    assert origin["questions_sha256"] == environment["questions"]["asked_sha256"]
    assert origin["decoding"]["temperature"] == 0.0 and origin["versions"]["searchparty"]


def test_another_retriever_is_a_departure_and_none_at_all_is_not() -> None:
    def departures(retriever: str | None, searches: bool = True) -> list[str]:
        described = describe_protocol("search-r1", retriever, [], searches=searches)
        assert described is not None
        found: list[str] = described["departures"]
        return found

    assert departures("dense(model=intfloat/E5-base-v2)@0123") == [] == departures(None, searches=False)
    assert departures("bm25(b=0.75)@0123") == ["retriever: the protocol has e5, the run bm25(b=0.75)@0123"]
    letters_of_a_hash = "bm25(b=0.75)@01e5b2"
    assert departures(letters_of_a_hash) == [f"retriever: the protocol has e5, the run {letters_of_a_hash}"]
    assert departures(None) == ["retriever: the protocol has e5, the run one without a name"]


def test_questions_that_do_not_say_their_split_are_a_departure_with_the_way_out(
    small: Protocol, protocol_file: Path, tmp_path: Path
) -> None:
    unsaid = [replace(one, split=None) if one.id in ("q1", "q2") else one for one in pool()]
    described = describe_protocol(str(protocol_file), "e5", unsaid, searches=True)
    assert described is not None
    (departure,) = described["departures"]
    assert departure.startswith("split: the protocol asks test of nq, and 2 of the questions asked do not say their split")
    file = tmp_path / "unsaid.jsonl"
    write_questions(file, [one for one in unsaid if one.split is None])
    assert main(["questions", "convert", str(file), "-o", str(tmp_path / "said.jsonl"), "--split", "test"]) == 0
    said = describe_protocol(str(protocol_file), "e5", read_questions(tmp_path / "said.jsonl"), searches=True)
    assert said is not None and said["departures"] == []


def test_a_question_is_not_moved_to_another_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_questions(tmp_path / "q.jsonl", pool())
    assert main(["questions", "convert", str(tmp_path / "q.jsonl"), "-o", str(tmp_path / "o.jsonl"), "--split", "test"]) == 2
    assert "1 question of another split than test, such as nq/x of train" in capsys.readouterr().err
    assert not (tmp_path / "o.jsonl").exists()


def test_results_of_two_protocols_are_not_compared_and_the_difference_is_printed(
    protocol_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(SMALL.replace("name: small", "name: other").replace("max_tokens: 64", "max_tokens: 32"))
    assert evaluated(protocol_file, tmp_path / "a") == evaluated(other, tmp_path / "b") == 0
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 2
    error = capsys.readouterr().err
    assert "protocol differs" in error and "protocol sampling.max_tokens differs" in error
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--force"]) == 0
    assert "protocol differs" in capsys.readouterr().out


def test_a_run_is_not_resumed_under_a_protocol_that_changed(
    protocol_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluated(protocol_file, tmp_path / "run") == 0
    assert evaluated(protocol_file, tmp_path / "run", "--resume") == 0
    protocol_file.write_text(SMALL.replace("metric: exact_match", "metric: f1"))
    assert evaluated(protocol_file, tmp_path / "run", "--resume") == 2
    assert "protocol.sha256 changed" in capsys.readouterr().err


def test_a_run_is_resumed_although_its_departures_are_worded_otherwise_now(protocol_file: Path, tmp_path: Path) -> None:
    assert evaluated(protocol_file, tmp_path / "run") == 0
    file = tmp_path / "run/environment.json"
    environment = json.loads(file.read_text())
    environment["protocol"]["departures"] = ["retriever: the run has one without a name"]
    file.write_text(json.dumps(environment))
    assert evaluated(protocol_file, tmp_path / "run", "--resume") == 0
