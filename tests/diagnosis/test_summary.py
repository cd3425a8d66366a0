"""From facts to a diagnosis: what is counted, over what, and what None means."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from playing import PARIS, FixedRetriever, good_lines, play_lines
from searchparty.cli.main import main
from searchparty.config.recipe import EvalRecipe
from searchparty.diagnosis.evidence import Interface
from searchparty.diagnosis.facts import EpisodeFacts, facts_of
from searchparty.diagnosis.reading import EvaluationDiagnosis, diagnose_run
from searchparty.diagnosis.roles import MEANS
from searchparty.diagnosis.summary import Groups, diagnose
from searchparty.diagnosis.wording import in_words
from searchparty.episodes.store import EpisodeWriter
from searchparty.episodes.types import ExecutorUse, PlannerTurn
from searchparty.errors import UserError
from searchparty.evaluation.intervals import bootstrap_means
from searchparty.evaluation.run import score_run
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.scorers import SCORERS
from searchparty.questions import write_questions
from searchparty.teams.baselines import Direct
from searchparty.teams.chained import Chained
from searchparty.teams.hierarchical import Hierarchical
from searchparty.teams.team import Team

LYON, PARIS_SAID = "<answer>Lyon</answer>", "<answer>Paris</answer>"
TITLED = replace(PARIS, supporting_titles=("Title 1",))


def told(key: str, sample: int, answers: list[str], team: Team | None = None, **lines: list[str]) -> EpisodeFacts:
    question = replace(TITLED, id=key)
    played = play_lines(team or Chained(candidates=len(answers)), good_lines(answerer=[answers], **lines), question=question)
    played.sample = sample
    return facts_of(played, question, SCORERS["squad"])


def test_groups_are_of_attempts_at_a_question_and_of_candidates_of_a_call() -> None:
    facts = [
        told("a", 0, [PARIS_SAID, LYON]), told("a", 1, [LYON, LYON]),
        told("b", 0, [LYON, PARIS_SAID]), told("b", 1, [LYON, LYON]),
        told("c", 0, [PARIS_SAID, PARIS_SAID]),
    ]  # fmt: skip
    found = diagnose(facts)
    assert found.episode_groups == Groups(all_right=0, all_wrong=1, mixed=1, single=1)
    assert found.candidate_groups == Groups(all_right=1, all_wrong=2, mixed=2, single=0)
    assert found.distinct_answers == pytest.approx((2 + 2 + 1) / 3)
    assert found.right == pytest.approx(2 / 5)


def test_shares_of_episodes_and_of_golden_passages_have_intervals() -> None:
    nothing = FixedRetriever(())
    facts = [told(key, sample, [PARIS_SAID]) for key in "abcdefgh" for sample in range(2)]
    lost = replace(TITLED, id="z")
    facts += [facts_of(play_lines(Chained(), good_lines(answerer=[LYON]), nothing, question=lost), lost, SCORERS["squad"])] * 2
    found = diagnose(facts)
    of_passages = {"found", "reported", "selected", "answered"}
    of_all = {"right", "no_search", "repeated_searches", "empty_searches", "reports_used"}
    means = {"searches", "steps", "reports", "distinct_answers"}
    assert found.intervals.keys() == of_passages | of_all | means
    assert found.evidence is not None and found.evidence.found == found.right == pytest.approx(16 / 18)
    for name in ("right", "found"):
        low, high = found.intervals[name]
        assert low < 16 / 18 < high <= 1
    low, high = found.intervals["no_search"]
    assert low == 0 < high, "Wilson's, since nothing scatters"
    low, high = found.intervals["empty_searches"]
    assert found.empty_searches == pytest.approx(2 / 18)
    assert low < found.empty_searches < high
    text = "\n".join(in_words(found))
    assert "88.9 % [" in text and "found 88.9 % [" in text


def test_a_share_of_nothing_has_no_interval() -> None:
    silent = replace(told("a", 0, [PARIS_SAID]), searches=0, repeated_searches=0, empty_searches=0)
    found = diagnose([silent])
    assert not {"repeated_searches", "empty_searches"} & found.intervals.keys()
    assert "repeated 0.0 %, empty 0.0 % of all searches" in "\n".join(in_words(found))
    some = diagnose([silent, told("b", 0, [PARIS_SAID])])
    assert some.intervals["repeated_searches"][0] == 0


def test_losses_have_intervals_and_name_episodes_of_different_questions() -> None:
    facts = [told(key, sample, [LYON]) for key in "abcdefgh" for sample in range(2)] + [told("z", 0, [PARIS_SAID])]
    (loss,) = diagnose(facts).losses
    assert loss.interface is Interface.ANSWER
    assert (loss.episodes, loss.share) == (16, 16 / 17)
    assert loss.low <= loss.share <= loss.high
    assert loss.examples == [f"nq/{key}#0" for key in "abcde"]


def test_the_interval_of_a_share_of_episodes_is_around_it_where_questions_have_unequal_attempts() -> None:
    facts = [told(key, sample, [LYON]) for key in "abcd" for sample in range(8)]
    facts += [told(key, 0, [PARIS_SAID]) for key in "efghijklmnopqrstuvwx"]
    (loss,) = diagnose(facts).losses
    assert loss.share == 32 / 52
    assert loss.low < loss.share < loss.high


def test_a_team_without_leader_or_reports_has_none_of_their_numbers() -> None:
    chained, direct = diagnose([told("a", 0, [LYON])]), diagnose([told("a", 0, [LYON], Direct())])
    assert chained.rounds is None and chained.reports_used == 1.0
    assert direct.reports is None and direct.reports_used is None
    assert direct.evidence is not None and direct.evidence.reported is None


def test_a_model_that_does_not_say_its_tokens_used_no_known_number() -> None:
    episode = play_lines(Chained(), good_lines(), exchanges_ids=False)
    episode.agents[0].calls[0].prompt_tokens = None
    roles = diagnose([facts_of(episode, PARIS, SCORERS["squad"])]).roles
    assert roles["searcher"].input_tokens is None and roles["searcher"].unique_input_tokens is None
    assert roles["searcher"].characters > 0


def test_means_of_roles_draw_questions_again_over_the_episodes_in_which_the_role_acted() -> None:
    facts = [told(key, sample, [PARIS_SAID]) for key in "abcdef" for sample in range(2)]
    facts = [
        replace(one, roles={name: replace(role, searches=number // 2) for name, role in one.roles.items()})
        for number, one in enumerate(facts)
    ]
    facts += [told("direct", 0, [LYON], Direct())]
    searcher = diagnose(facts).roles["searcher"]
    assert (searcher.episodes, searcher.searches) == (12, 2.5)
    by_hand = bootstrap_means({"nq": np.arange(6.0)}).datasets["nq"]
    assert searcher.intervals["searches"] == pytest.approx((by_hand.low, by_hand.high))
    assert searcher.intervals["calls"] == pytest.approx((searcher.calls, searcher.calls)), "every question has the same"
    assert searcher.intervals.keys() == MEANS.keys()


def test_questions_are_drawn_again_within_their_dataset() -> None:
    """Two datasets of which each is all right or all wrong: how many are right of both is then no matter of the draw."""
    facts = [told(key, sample, [PARIS_SAID]) for key in "abcdef" for sample in range(2)]
    facts += [replace(told(key, 0, [LYON]), dataset="other", question_key=f"other/{key}") for key in "abcdef"]
    found = diagnose(facts)
    assert found.intervals["distinct_answers"] == pytest.approx((1, 1))
    searching = [replace(one, searches=4 if one.dataset == "nq" else 1) for one in facts if one.sample == 0]
    assert diagnose(searching).intervals["searches"] == pytest.approx((2.5, 2.5))


def test_reports_that_reach_the_answerer_are_a_share_of_those_written() -> None:
    lines = {"leader": ["<task>A?</task><task>B?</task>", "<select>2</select>"]}
    found = diagnose([told("a", 0, [LYON], Hierarchical(), **lines)])
    assert (found.reports, found.reports_used, found.rounds) == (2, 0.5, 1)


def test_nothing_found_is_an_empty_search_and_words_are_found_for_everything() -> None:
    played = play_lines(Chained(), good_lines(answerer=["Paris"]), FixedRetriever(()), question=TITLED)
    found = diagnose([facts_of(played, TITLED, SCORERS["squad"])])
    assert found.empty_searches == 1.0
    said = "\n".join(in_words(found))
    assert "Fails most at format: 1 episode" in said
    assert "answerer: no_tag 1" in said
    assert "Golden passages: found 0.0 %" in said


def test_no_episode_is_refused() -> None:
    with pytest.raises(ValueError):
        diagnose([])


@pytest.fixture
def evaluation(tmp_path: Path) -> RunDirectory:
    run, questions = RunDirectory(tmp_path / "run"), [replace(TITLED, id="a"), replace(TITLED, id="b", dataset="other")]
    write_questions(tmp_path / "questions.jsonl", questions)
    recipe = {"team": "chained", "model": "scripted:default", "questions": tmp_path / "questions.jsonl", "index": "none"}
    run.begin(EvalRecipe.model_validate(recipe), questions, {"questions": {}})
    with EpisodeWriter(run.episodes_file) as writer:
        for answer, question in ((LYON, questions[0]), (PARIS_SAID, questions[0]), (LYON, questions[1])):
            writer.write(play_lines(Chained(), good_lines(answerer=[answer]), question=question))
    return run


def test_of_two_attempts_at_an_episode_the_later_counts_and_datasets_are_apart(evaluation: RunDirectory) -> None:
    found = diagnose_run(evaluation.path)
    assert isinstance(found, EvaluationDiagnosis)
    assert (found.whole.episodes, found.whole.right) == (2, 0.5)
    assert {name: one.right for name, one in found.datasets.items()} == {"nq": 1.0, "other": 0.0}


@pytest.mark.parametrize("samples", [1, 3])
def test_what_an_evaluation_says_too_has_the_interval_that_it_has_there(tmp_path: Path, samples: int) -> None:
    run, questions = RunDirectory(tmp_path / "run"), [replace(TITLED, id=str(number)) for number in range(9)]
    write_questions(tmp_path / "questions.jsonl", questions)
    recipe = EvalRecipe.model_validate(
        {"team": "chained", "model": "scripted:default", "questions": tmp_path / "questions.jsonl", "index": "none",
         "samples": samples}
    )  # fmt: skip
    run.begin(recipe, questions, {"questions": {}})
    with EpisodeWriter(run.episodes_file) as writer:
        for number, question in enumerate(questions):
            for sample in range(samples):
                answer = PARIS_SAID if number * (sample + 1) % 3 == 0 else LYON
                played = play_lines(Chained(), good_lines(answerer=[answer]), question=question)
                writer.write(replace(played, sample=sample))
    summary = score_run(run, recipe, SCORERS["squad"])
    found, quality = diagnose_run(run.path), summary.quality["nq"].exact_match
    assert isinstance(found, EvaluationDiagnosis)
    assert found.whole.intervals["right"] == pytest.approx((quality.low, quality.high))
    assert found.whole.intervals["no_search"] == pytest.approx(summary.behaviour["all"].intervals["no_search"])


def test_the_command_names_the_episodes_that_show_it(evaluation: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(evaluation.path)]) == 0
    said = capsys.readouterr().out
    assert "answer: other/b#0" in said
    of_other = [line.split() for line in said.splitlines() if line.startswith("other ")]
    assert of_other == [["other", "1", "0.0", "0.0", "100.0"]]
    assert "[0.0, 79.3]" in said, "Wilson's of one question, under its shares"
    assert f"searchparty show {evaluation.path}" in said


def test_episodes_that_an_unfinished_run_lacks_are_told(evaluation: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(evaluation.path)]) == 0
    assert "Not finished" not in capsys.readouterr().out
    lines = evaluation.episodes_file.read_text().splitlines(keepends=True)
    evaluation.episodes_file.write_text("".join(lines[:2]))
    assert main(["diagnose", str(evaluation.path)]) == 0
    assert "Not finished: 1 episode asked for and not played" in capsys.readouterr().out


def test_right_is_what_the_run_was_last_scored_by(evaluation: RunDirectory) -> None:
    recipe = evaluation.read_recipe()
    before = [replace(question, golden_answers=("Lyon-Paris",)) for question in evaluation.read_questions()]
    evaluation.begin(recipe, before, {"questions": {}})
    with EpisodeWriter(evaluation.episodes_file) as writer:
        for question in before:
            writer.write(play_lines(Chained(), good_lines(answerer=["<answer>Lyon Paris</answer>"]), question=question))
    for scorer, right in (("squad", 0.0), ("triviaqa", 1.0)):
        score_run(evaluation, recipe, SCORERS[scorer])
        found = diagnose_run(evaluation.path)
        assert isinstance(found, EvaluationDiagnosis) and found.whole.right == right


def test_a_run_without_episodes_is_refused_in_a_line(evaluation: RunDirectory) -> None:
    evaluation.episodes_file.unlink()
    with pytest.raises(UserError, match="no episode was recorded yet"):
        diagnose_run(evaluation.path)


def test_plans_of_a_planner_are_counted_with_the_executors_that_gave_nothing() -> None:
    def planned(*turns: PlannerTurn) -> EpisodeFacts:
        episode = play_lines(Direct(), good_lines())
        episode.planner_turns = list(turns)
        return facts_of(episode, PARIS, SCORERS["squad"])

    good = PlannerTurn(None, "?", ["RA", "AG"], uses=[ExecutorUse("RA", None), ExecutorUse("AG", None, "no_answer")])
    found = diagnose([planned(good, good), planned(PlannerTurn(None, "?", [], broken_rule="empty"))])
    assert found.workflows == {"RA, AG": 2, "broken: empty": 1}
    assert found.executor_problems == {"AG": {"no_answer": 2}}
    said = "\n".join(in_words(found))
    assert "Workflows: RA, AG (2), broken: empty (1)." in said and "Nothing usable came from AG: no_answer 2." in said
