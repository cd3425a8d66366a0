"""A judge's opinion stands beside the score: what it sees, how far it agrees, and when it is not to be believed."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playing import scripted_model
from searchparty.cli.main import main
from searchparty.errors import Failure, FailureKind, UserError
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.scorers import SCORERS
from searchparty.judging.agreement import Agreement, agreement_of
from searchparty.judging.canaries import ORDER, make_canaries
from searchparty.judging.judge import VERSION, AnswerJudge, answer_prompt, read_verdict
from searchparty.judging.run import Judgement, judge_case, read_case, read_judgement
from searchparty.models.types import GenerateRequest
from searchparty.questions.types import Question
from searchparty.reporting.systems import gather
from searchparty.reporting.writing import make_report

SQUAD = SCORERS["squad"]
RIGHT, WRONG = "<verdict>right</verdict>", "<verdict>wrong</verdict>"
Script = Callable[[GenerateRequest], str | Failure]


def parts(request: GenerateRequest) -> tuple[list[str], str]:
    """Golden answers and answer, as a judge sees them."""
    found = re.search(r"Golden answers: (.*)\n\nAnswer given: (.*)\n\nYour verdict", request.messages[-1].content, re.DOTALL)
    assert found is not None
    return found[1].split(" | "), found[2]


def sensible(request: GenerateRequest) -> str:
    """Right if the answer holds a golden one and does not hedge."""
    golden, answer = parts(request)
    return RIGHT if any(one in answer for one in golden) and " or " not in answer else WRONG


def judged(path: Path, script: Script, canaries: int = 3, **model: bool) -> Judgement:
    case = read_case(path, canaries=canaries)
    return asyncio.run(judge_case(case, AnswerJudge(scripted_model(script, **model), answer_prompt())))


def test_a_sensible_judge_finds_what_exact_match_misses_and_both_are_counted(evaluation: Path) -> None:
    found = judged(evaluation, sensible)
    assert found.agreement == Agreement(both_right=1, only_judge=1, only_exact_match=0, both_wrong=3)
    assert found.right == pytest.approx((1 / 2 + 1 / 3) / 2) and found.exact_match == pytest.approx((1 / 2 + 0) / 2)
    assert found.low < found.right < found.high
    assert found.only_judge == ["world/3: the city of Prague, in Bohemia"]
    assert found.failed_canaries == 0 and set(found.canaries) == {"nothing", "order", "question", "other", "hedge"}
    assert (found.prompt, found.unusable) == (VERSION, [])


def test_agreement_and_the_score_beside_it_have_intervals(evaluation: Path) -> None:
    found = judged(evaluation, sensible)
    low, high = found.intervals["agreement"]
    assert 0 <= low <= found.agreement.share <= high <= 1 and low < high
    low, high = found.intervals["kappa"]
    assert found.agreement.kappa is not None
    assert -1 <= low <= found.agreement.kappa <= high <= 1 and low < high
    low, high = found.intervals["exact_match"]
    assert low <= found.exact_match <= high
    assert read_judgement(evaluation) == found


def test_a_judge_who_always_agrees_has_a_kappa_of_1_and_no_interval_for_it(evaluation: Path) -> None:
    found = judged(evaluation, lambda request: RIGHT if parts(request)[1] in parts(request)[0] else WRONG)
    assert found.agreement.share == found.agreement.kappa == 1
    assert set(found.intervals) == {"exact_match", "agreement"}


def test_the_score_and_its_files_stay_as_they_were(evaluation: Path) -> None:
    run = RunDirectory(evaluation)
    before = run.scores_file.read_bytes(), run.summary_file.read_bytes()
    judged(evaluation, lambda _: RIGHT)
    assert (run.scores_file.read_bytes(), run.summary_file.read_bytes()) == before


def test_a_judge_that_calls_everything_right_fails_every_canary_and_is_not_shown(evaluation: Path) -> None:
    found = judged(evaluation, lambda _: RIGHT)
    assert found.right == 1.0
    assert all(asked == failed > 0 for asked, failed in found.canaries.values())
    table = next(table for table in make_report(gather([evaluation]), plots=False).tables if table.name == "judge")
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert getattr(row["right for the judge"], "value", 0) is None
    assert getattr(row["canaries"], "value", 0) == found.failed_canaries


def test_a_believable_judge_is_a_column_of_the_report_beside_the_score(evaluation: Path) -> None:
    found = judged(evaluation, sensible)
    table = next(table for table in make_report(gather([evaluation]), plots=False).tables if table.name == "judge")
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert getattr(row["right for the judge"], "value", None) == found.right
    assert "Secondary" in table.notes[0]


def test_a_judge_that_obeys_the_answer_fails_the_canary_that_gives_orders(evaluation: Path) -> None:
    found = judged(evaluation, lambda request: RIGHT if "correct by definition" in parts(request)[1] else WRONG)
    assert {kind for kind, (_, failed) in found.canaries.items() if failed} == {"order"}


def test_an_answer_cannot_write_a_verdict_into_what_the_judge_reads(evaluation: Path) -> None:
    seen: list[str] = []
    judged(evaluation, lambda request: seen.append(request.messages[-1].content) or WRONG)
    assert any("correct by definition" in content for content in seen)
    assert not any("<verdict>" in content for content in seen)


def test_each_answer_to_a_question_is_asked_about_once_and_none_is_no_question(evaluation: Path) -> None:
    run, seen = RunDirectory(evaluation), []
    rows = [json.loads(line) for line in run.scores_file.read_text().splitlines()]
    rows += [{**rows[0], "sample": 1}, {**rows[1], "sample": 1, "answer": None, "problem": "no_tag"}]
    run.scores_file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = judged(evaluation, lambda request: seen.append(parts(request)) or RIGHT, canaries=0)
    assert len(seen) == 5
    assert found.agreement.episodes == 7
    assert found.agreement.both_wrong == 1
    assert found.canaries == {}


@pytest.mark.parametrize("exchanges_ids", [True, False])
def test_a_judge_that_fails_or_rambles_is_listed_and_counts_as_wrong(evaluation: Path, exchanges_ids: bool) -> None:
    broken = Failure("model", FailureKind.TIMEOUT, "late")
    found = judged(evaluation, lambda request: broken if "France" in parts(request)[1] else "hm", exchanges_ids=exchanges_ids)
    assert found.right == 0.0 and len(found.unusable) == 5
    assert found.failed_canaries == sum(asked for asked, _ in found.canaries.values())


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (RIGHT, True),
        ("It is <verdict> wrong </verdict>", False),
        (f"<think>maybe {RIGHT}</think>{WRONG}", False),
        (f"{RIGHT}{WRONG}", None),
        (f"{RIGHT}{RIGHT}", None),
        ("right", True),
        (" Wrong.\n", False),
        ("<think>it is right</think>", None),
        ("It is right", None),
        ("right or wrong", None),
        ("<verdict>maybe</verdict>", None),
    ],
)
def test_a_reply_has_one_verdict_or_none(text: str, verdict: bool | None) -> None:
    assert read_verdict(text) is verdict


ANSWERS = st.text(min_size=1, max_size=12)


@given(st.lists(st.tuples(ANSWERS, ANSWERS), min_size=1, max_size=8), st.integers(1, 10))
def test_no_canary_is_ever_right_by_exact_match(pairs: list[tuple[str, str]], count: int) -> None:
    questions = [Question(str(number), text, (golden,), "nq") for number, (text, golden) in enumerate(pairs)]
    birds = make_canaries(questions, SQUAD, count)
    assert all(SQUAD.exact_match(bird.answer, bird.question.golden_answers) == 0 for bird in birds)
    assert len({bird.question.id for bird in birds}) <= count
    assert {bird.kind for bird in birds} <= {"nothing", "order", "question", "other", "hedge"}
    assert birds == make_canaries(questions, SQUAD, count)


def test_canaries_are_spread_over_all_questions() -> None:
    questions = [Question(str(number), f"who is {number}?", (f"name{number}",), "nq") for number in range(19)]
    asked = list(dict.fromkeys(int(bird.question.id) for bird in make_canaries(questions, SQUAD, 10)))
    assert asked == [0, 1, 3, 5, 7, 9, 11, 13, 15, 17]


def test_a_canary_that_is_right_by_chance_is_left_out() -> None:
    questions = [Question("1", "What is written here?", (ORDER,), "nq"), Question("2", "?", ("Rome",), "nq")]
    assert "order" not in {bird.kind for bird in make_canaries(questions, SQUAD, 1)}


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_agreement_is_the_share_of_equal_opinions_and_kappa_is_1_only_for_all(pairs: list[tuple[bool, bool]]) -> None:
    found = agreement_of(pairs)
    assert found.episodes == len(pairs)
    assert found.share == sum(judge == exact for judge, exact in pairs) / len(pairs)
    assert found.kappa is None or (found.kappa == pytest.approx(1.0)) == (found.share == 1.0)


def test_kappa_is_the_one_of_the_textbook() -> None:
    assert Agreement(20, 5, 10, 15).kappa == pytest.approx(0.4)
    assert Agreement(3, 0, 0, 0).kappa is None
    with pytest.raises(ValueError):
        agreement_of([])


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1))
def test_kappa_is_the_mean_of_what_each_episode_adds_to_it(pairs: list[tuple[bool, bool]]) -> None:
    found = agreement_of(pairs)
    if found.kappa is None:
        with pytest.raises(ValueError):
            found.kappa_value(True, True)
    else:
        assert sum(found.kappa_value(*pair) for pair in pairs) / len(pairs) == pytest.approx(found.kappa)


def test_what_episodes_add_to_kappa_scatters_as_kappa_does_when_they_are_drawn_again() -> None:
    random = np.random.default_rng(0)
    exact = random.random(400) < 0.3
    judge = np.where(random.random(400) < 0.85, exact, ~exact)
    pairs = list(zip(judge.tolist(), exact.tolist(), strict=True))
    found = agreement_of(pairs)
    expected = np.std([found.kappa_value(*pair) for pair in pairs]) / len(pairs) ** 0.5
    drawn = [agreement_of(pairs[place] for place in random.integers(400, size=400)).kappa for _ in range(1000)]
    assert np.std(np.array(drawn, float)) == pytest.approx(expected, rel=0.1)


def test_a_judgement_is_out_of_date_once_the_run_is_scored_again(evaluation: Path) -> None:
    found = judged(evaluation, sensible)
    assert read_judgement(evaluation) == found
    scores = RunDirectory(evaluation).scores_file
    scores.write_text(scores.read_text().replace("Bohemia", "Moravia"))
    assert read_judgement(evaluation) is None


def test_a_judgement_of_another_version_and_a_run_without_scores_are_refused(evaluation: Path) -> None:
    judged(evaluation, sensible)
    (evaluation / "judge.json").write_text('{"format": 0}')
    with pytest.raises(UserError, match=r"judge\.json: not in the expected form"):
        read_judgement(evaluation)
    RunDirectory(evaluation).scores_file.unlink()
    with pytest.raises(UserError, match="was not finished"):
        judged(evaluation, sensible)


def test_a_prompt_of_ones_own_has_its_own_version_and_must_use_known_fields(tmp_path: Path) -> None:
    (tmp_path / "strict-2.yaml").write_text("turns:\n  answer: '{question} {answer}'\n")
    mine = answer_prompt(tmp_path / "strict-2.yaml")
    assert mine.version == "strict-2" and mine.digest != answer_prompt().digest
    (tmp_path / "bad.yaml").write_text("turns:\n  answer: '{reports}'\n")
    with pytest.raises(UserError, match="unknown field"):
        answer_prompt(tmp_path / "bad.yaml")


def test_the_command_prints_the_column_and_fails_if_it_is_not_to_be_believed(
    evaluation: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["judge", str(evaluation), "--model", "scripted:default"]) == 0
    said = capsys.readouterr().out
    assert "exact match, the score 25.0 %" in said and "secondary" in said and "they agree on          100.0 %" in said
    assert main(["judge", str(evaluation), "--model", "scripted:default", "--max-tokens", "3", "--json"]) == 1
    captured = capsys.readouterr()
    assert json.loads(captured.out)["right"] == 0.0
    assert "do not believe this column" in captured.err and "no usable verdict" in captured.err


def test_a_fault_of_the_run_is_named_before_a_model_is_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", str(tmp_path), "--model", str(tmp_path / "no model here")]) == 2
    assert "no run here" in capsys.readouterr().err
