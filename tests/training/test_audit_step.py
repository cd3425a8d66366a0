"""The audit as a library call: on a step in memory, whatever its episodes, and against any change of a single token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recording import RIGHT, chained_episodes, credited, hierarchical_episodes
from searchparty.credit.estimators.gae import GeneralisedAdvantage
from searchparty.credit.plan import CreditPlan, RoleCredit
from searchparty.credit.plans import CHAINED_RL, MULTIAGENT_OPD, PROMPTED_CRITIC
from searchparty.credit.reward_mix import RewardMix
from searchparty.credit.sequences import token_sequences
from searchparty.credit.types import SequenceKey
from searchparty.episodes.types import Episode, SpanKind, StopReason
from searchparty.evaluation.scorers import SCORERS
from searchparty.training.audit import audit_step, read_recorded_step
from searchparty.training.audit_report import Rule, StepAudit
from searchparty.training.recorded_arrays import RecordedSequence
from searchparty.training.records import Judged, StepRecord, write_step

SQUAD = SCORERS["squad"]
ARRAYS = {
    "ids_T": lambda value, by: value + by,
    "trainable_T": lambda value, by: not value,
    "old_logprobs_T": lambda value, by: value - by,
    "advantages_T": lambda value, by: value + by,
    "weights_T": lambda value, by: value + by,
    "teacher_ids_T": lambda value, by: value + by,
    "teacher_logprobs_T": lambda value, by: value - by,
}
STEPS = {
    "chained": (credited(chained_episodes(), CHAINED_RL), CHAINED_RL),
    "hierarchical": (credited(hierarchical_episodes(), MULTIAGENT_OPD), MULTIAGENT_OPD),
}


def audit(record: StepRecord, plan: CreditPlan, samples: int | None = 3) -> StepAudit:
    return audit_step(record, plan, SQUAD, samples=samples)


@pytest.mark.parametrize("team", STEPS)
def test_a_step_in_memory_is_proved_like_the_same_step_on_disk(team: str, tmp_path) -> None:
    record, plan = STEPS[team]
    write_step(tmp_path, record)
    in_memory = audit(record, plan)
    on_disk = audit_step(read_recorded_step(tmp_path, 1), plan, SQUAD, samples=3)
    assert in_memory == on_disk
    assert in_memory.violations == []
    assert in_memory.proved.sequences == len(record.signals)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory):
    """Both steps as they are read from disk."""
    folder = tmp_path_factory.mktemp("steps")
    for team, (record, _) in STEPS.items():
        write_step(folder / team, record)
    return {team: read_recorded_step(folder / team, 1) for team in STEPS}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_change_of_any_single_token_in_any_array_is_found_and_named(recorded, data: st.DataObject) -> None:
    team = data.draw(st.sampled_from(sorted(STEPS)))
    step, plan = recorded[team], STEPS[team][1]
    name = data.draw(st.sampled_from(sorted(ARRAYS)))
    place = data.draw(st.integers(0, len(step.sequences) - 1))
    one: RecordedSequence = step.sequences[place]
    token = data.draw(st.integers(0, len(one.ids_T) - 1))
    distilled = one.role == "searcher" and team == "hierarchical"
    if name == "teacher_logprobs_T" and one.trainable_T[token] and one.scored and not distilled:
        return  # a penalty in a reward may cancel out of the advantages, and nothing else shows it
    array_T = getattr(one, name).copy()
    array_T[token] = ARRAYS[name](
        array_T[token], data.draw(st.sampled_from([1, 2, 0.25] if array_T.dtype == np.float32 else [1, 7]))
    )
    sequences = [*step.sequences]
    sequences[place] = replace(one, **{name: array_T})
    found = audit_step(replace(step, sequences=sequences), plan, SQUAD, samples=3, first_only=True).violations
    assert len(found) == 1
    first = found[0]
    assert (first.question_key, first.sample, first.agent, first.candidate, first.token) == (
        one.key.question_key, one.key.sample, one.key.agent, one.key.candidate, token,
    )  # fmt: skip


def test_the_first_violation_alone_is_given_where_only_that_is_wanted() -> None:
    record, plan = STEPS["chained"]
    wrong = {key: [Judged(1.0, 1.0, None) for _ in judged] for key, judged in record.judged.items()}
    changed = replace(record, judged=wrong)
    assert len(audit(changed, plan).violations) > 1
    assert len(audit_step(changed, plan, SQUAD, first_only=True).violations) == 1


def test_an_episode_that_a_service_ended_has_no_signals_and_needs_none() -> None:
    episodes = chained_episodes()
    episodes[1].stop_reason = StopReason.MODEL_FAILED
    record = credited(episodes, CHAINED_RL)
    assert audit(record, CHAINED_RL).violations == []
    episodes[1].stop_reason = StopReason.ANSWERED
    signals = credited(episodes, CHAINED_RL).signals
    episodes[1].stop_reason = StopReason.MODEL_FAILED
    found = audit(replace(record, signals=signals), CHAINED_RL).violations[0]
    assert (found.rule, found.sample, found.agent) == (Rule.ROLES, 1, "searcher.1")
    assert "model_failed" in found.expected


def test_a_sequence_without_finite_log_probabilities_is_counted_and_may_have_no_signal() -> None:
    episodes = chained_episodes()
    _actions(episodes[0], "answerer.1")[1].logprobs[0] = float("nan")
    record = credited(episodes, CHAINED_RL)
    report = audit(record, CHAINED_RL)
    assert report.violations == []
    assert report.proved.left_out == 1


def test_a_finite_sequence_without_a_signal_breaks_the_rule() -> None:
    record, plan = STEPS["chained"]
    found = audit(replace(record, signals=record.signals[1:]), plan).violations[0]
    assert (found.rule, found.agent, found.found) == (Rule.ROLES, "searcher.1", "none")


def test_a_group_of_one_may_not_get_an_advantage() -> None:
    record = credited(chained_episodes()[::3], CHAINED_RL)
    assert audit(record, CHAINED_RL, samples=1).proved.singletons == 2
    signal = record.signals[0]
    assert signal.role == "searcher" and not signal.advantages_T.any()
    moved = replace(signal, advantages_T=np.where(signal.trainable_T, 0.5, 0).astype(np.float32))
    found = audit(replace(record, signals=[moved, *record.signals[1:]]), CHAINED_RL, samples=1).violations[0]
    assert (found.rule, found.agent, found.token) == (Rule.GROUPS, "searcher.1", int(signal.trainable_T.argmax()))


def test_a_role_that_does_not_learn_needs_no_ids_and_may_have_no_signal() -> None:
    plan = CreditPlan(roles={**CHAINED_RL.roles, "searcher": CHAINED_RL.roles["searcher"].model_copy(update={"frozen": True})})
    record = credited(chained_episodes(), plan)
    report = audit(record, plan)
    assert report.violations == []
    assert report.proved.sequences == 6 * 3
    signals = credited(chained_episodes(), CHAINED_RL).signals
    assert audit(replace(record, signals=signals), plan).violations[0].agent == "searcher.1"


def test_a_role_that_does_not_learn_may_be_played_by_a_model_that_exchanges_text() -> None:
    plan = CreditPlan(roles={**CHAINED_RL.roles, "searcher": CHAINED_RL.roles["searcher"].model_copy(update={"frozen": True})})
    episodes = chained_episodes()
    for episode in episodes:
        episode.token_exact = False
        for span in _spans(episode, "searcher.1"):
            span.ids = span.logprobs = None
    assert audit(credited(episodes, plan), plan).violations == []
    found = audit(STEPS["chained"][0], CHAINED_RL)
    assert found.violation is None
    record = replace(STEPS["chained"][0], episodes=episodes)
    assert str(audit(record, CHAINED_RL).violation).startswith(
        "step 1, question nq/q1, sample 0, agent searcher.1: histories: ids"
    )


def test_a_candidate_of_no_tokens_has_no_signal_and_still_counts_in_its_group() -> None:
    episodes = chained_episodes()
    for episode in episodes:
        for span in _actions(episode, "answerer.1")[1:]:
            span.ids, span.logprobs, span.text = [], [], ""
        episode.transcript("answerer.1").calls[0].output_tokens = len(_actions(episode, "answerer.1")[0].ids or ())
    report = audit(credited(episodes, CHAINED_RL), CHAINED_RL)
    assert report.violations == []
    assert report.proved.singletons == 0


def test_scores_from_outside_are_part_of_what_is_computed_again() -> None:
    episodes = hierarchical_episodes()
    searchers = [one.key for episode in episodes for one in token_sequences(episode) if one.role == "searcher"]
    scores = {"judge": {key: number % 4 / 4 for number, key in enumerate(searchers)}}
    record = credited(episodes, PROMPTED_CRITIC, scores=scores)
    assert audit(record, PROMPTED_CRITIC).violations == []
    found = audit(replace(record, scores={"judge": {**scores["judge"], searchers[0]: 0.9}}), PROMPTED_CRITIC).violations
    assert {(one.rule, one.what) for one in found} == {(Rule.CREDIT, "advantages")}
    missing = audit(replace(record, scores={}), PROMPTED_CRITIC).violations[0]
    assert (missing.rule, missing.what) == (Rule.CREDIT, "credit")


def test_what_critic_and_reference_said_is_recorded_and_credit_comes_out_of_it_again() -> None:
    record, plan = _with_a_critic()
    report = audit(record, plan)
    assert report.violations == []
    assert report.proved.advantages == report.proved.trained_tokens > 0


def test_a_value_that_was_not_used_is_found_at_its_token() -> None:
    record, plan = _with_a_critic()
    place = next(number for number, one in enumerate(record.signals) if one.role == "searcher")
    signal = record.signals[place]
    assert signal.values_T is not None
    token = int(signal.trainable_T.nonzero()[0][-1])
    changed_T = signal.values_T.copy()
    changed_T[token] += 1
    signals = [replace(signal, values_T=changed_T) if number == place else one for number, one in enumerate(record.signals)]
    found = audit(replace(record, signals=signals), plan).violations
    assert {(one.rule, one.what) for one in found} == {(Rule.CREDIT, "advantages"), (Rule.CREDIT, "returns")}
    assert (found[0].agent, found[0].question_key) == (signal.key.agent, signal.key.question_key)


def test_a_reference_that_was_given_other_ids_is_found() -> None:
    record, plan = _with_a_critic()
    key, said = next(iter(record.reference.items()))
    reference = {**record.reference, key: replace(said, ids_T=said.ids_T + 1)}
    found = audit(replace(record, reference=reference), plan).violations
    assert {(one.rule, one.what) for one in found} == {(Rule.IDS, "reference_ids")}


def test_a_role_without_a_critic_that_has_values_is_found_and_so_is_the_reverse() -> None:
    record, plan = _with_a_critic()
    without = CreditPlan(roles={**plan.roles, "searcher": CHAINED_RL.roles["searcher"]})
    lines = [one.what for one in audit(record, without).violations]
    assert "values of a critic" in lines
    bare = [replace(one, values_T=None, returns_T=None) for one in record.signals]
    assert "values of a critic" in [one.what for one in audit(replace(record, signals=bare), plan).violations]


def _with_a_critic() -> tuple[StepRecord, CreditPlan]:
    """Searchers with a critic and a reference, beside an Answerer without."""
    gae = RoleCredit(
        estimator=GeneralisedAdvantage(discount=0.99, trace_decay=0.95, whitening="tokens"),
        rewards=RewardMix(team_result=1.0, f1=0.5, reference_kl=0.1),
    )
    plan = CreditPlan(roles={"searcher": gae, "answerer": CHAINED_RL.roles["answerer"]})
    episodes = chained_episodes()
    draw = np.random.default_rng(7)
    values = {
        one.key: np.where(one.trainable_T, draw.normal(size=len(one.ids_T)), 0).astype(np.float32)
        for episode in episodes
        for one in token_sequences(episode)
    }
    return credited(episodes, plan, values=values), plan


def test_a_teacher_that_gave_no_finite_number_taught_nothing_and_is_counted() -> None:
    episodes = hierarchical_episodes()
    record = credited(episodes, MULTIAGENT_OPD)
    key = SequenceKey("nq/q1", 0, "searcher.1", 0)
    said = record.teacher[key]
    said.logprobs_T[np.flatnonzero(said.logprobs_T)[0]] = -np.inf
    found = audit(record, MULTIAGENT_OPD).violations
    assert {(one.agent, one.what) for one in found} == {("searcher.1", "advantages")}, "it was used, as if it were finite"
    own = next(signal for signal in record.signals if signal.key == key)
    own.advantages_T[:] = 0
    report = audit(record, MULTIAGENT_OPD)
    assert report.violations == []
    assert report.proved.unscored == 1


def test_equal_reports_and_escaped_tags_are_found_where_they_were_read() -> None:
    record, plan = STEPS["chained"]
    assert any("&lt;answer>Lyon" in span.text for span in _spans(record.episodes[0], "answerer.1"))
    assert audit(record, plan).proved.reports == 6


def test_a_role_that_the_plan_does_not_name_is_named() -> None:
    record, _ = STEPS["hierarchical"]
    found = audit(record, CHAINED_RL).violations[0]
    assert (found.rule, found.agent, found.found) == (Rule.ROLES, "leader.1", "leader")


def test_a_violation_is_one_printable_line() -> None:
    record, plan = STEPS["chained"]
    episodes: Sequence[Episode] = chained_episodes()
    span = _spans(episodes[0], "searcher.1")[1]
    span.text = "\x1b[31m\n\tred" * 9
    assert span.ids is not None
    span.ids = [*span.ids[:-1], 1]
    line = str(audit(replace(record, episodes=episodes), plan).violations[0])
    assert line.isprintable()
    assert line.startswith("step 1, question nq/q1, sample 0, agent searcher.1, candidate 0, token ")


def _spans(episode: Episode, agent: str) -> list:
    return episode.transcript(agent).spans


def _actions(episode: Episode, agent: str) -> list:
    return [span for span in _spans(episode, agent) if span.kind is SpanKind.ACTION]


def test_the_scripted_answers_are_right_where_the_tests_think_so() -> None:
    assert _actions(chained_episodes()[0], "answerer.1")[0].text == RIGHT
