"""The audit of a run on disk: it passes what was recorded, and names what was changed afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recording import change_arrays, change_episode, change_facts, files_of, write_run
from searchparty.credit.types import SequenceKey
from searchparty.training.audit import audit_run
from searchparty.training.audit_report import Rule, Violation
from searchparty.training.recorded_arrays import RecordedSequence, read_arrays

SEARCHER = SequenceKey("nq/q1", 1, "searcher.2", 0)
ANSWERER = SequenceKey("nq/q2", 0, "answerer.1", 1)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody changes."""
    return write_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def run(untouched: Path, tmp_path: Path) -> Path:
    """A copy of it to be changed."""
    return Path(shutil.copytree(untouched, tmp_path / "run"))


def sequence(run: Path, key: SequenceKey) -> tuple[int, int, RecordedSequence]:
    """The place of a sequence of the stage `student`, where its tokens begin, and the sequence."""
    start = 0
    for place, one in enumerate(read_arrays(files_of(run, "student").arrays)):
        if one.key == key:
            return place, start, one
        start += len(one.ids_T)
    raise KeyError(key)


def violation(run: Path) -> Violation:
    """What the audit names; it must name something."""
    found = audit_run(run).violation
    assert found is not None
    return found


def where(found: Violation) -> tuple[SequenceKey, int | None]:
    """The sequence and the token that a violation names."""
    assert (found.stage, found.step) == ("student", 1)
    assert found.question_key is not None and found.sample is not None
    assert found.agent is not None and found.candidate is not None
    return SequenceKey(found.question_key, found.sample, found.agent, found.candidate), found.token


def set_at(place: int, value: Any) -> Callable[[np.ndarray], None]:
    def change(array: np.ndarray) -> None:
        assert array[place] != value
        array[place] = value

    return change


def test_an_untouched_run_is_proved_in_every_number(untouched: Path) -> None:
    report = audit_run(untouched)
    assert report.violation is None
    start, teacher, student = report.stages
    assert (start.kind, start.proved.steps, start.note) == ("sft", 0, "nothing is recorded of such a stage")
    assert (teacher.proved.steps, teacher.proved.episodes, teacher.proved.judged) == (2, 9, 27)
    assert teacher.proved.sequences == 9 * (1 + 3)
    assert student.proved.sequences == 6 * (1 + 3 + 3)
    assert student.proved.reports == 6 * (3 + 2), "three reports for the Leader, two of them for the Answerer"
    assert student.proved.groups == 2 + 6, "a question's episodes for the Leader, a call's candidates for the Answerer"
    assert student.proved.teacher_tokens == student.proved.trained_tokens == student.proved.advantages > 0
    assert student.proved.largest_difference == 0


@pytest.mark.parametrize("key", [SEARCHER, ANSWERER])
@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize(
    ("name", "change", "rule_if_trained", "rule_if_not"),
    [
        ("trainable_N", np.logical_not, Rule.MASKS, Rule.MASKS),
        ("ids_N", lambda id: id + 1, Rule.HISTORIES, Rule.HISTORIES),
        ("teacher_ids_N", lambda id: id + 1, Rule.IDS, Rule.IDS),
        ("old_logprobs_N", lambda number: number - 1, Rule.IDS, Rule.MASKS),
        ("advantages_N", lambda number: np.nextafter(number, np.float32(9)), Rule.CREDIT, Rule.MASKS),
        ("weights_N", lambda number: np.nextafter(number, np.float32(9)), Rule.CREDIT, Rule.MASKS),
    ],
)
def test_one_changed_entry_of_an_array_is_named(
    run: Path,
    key: SequenceKey,
    trained: bool,
    name: str,
    change: Callable[[Any], Any],
    rule_if_trained: Rule,
    rule_if_not: Rule,
) -> None:
    _, start, one = sequence(run, key)
    token = int(np.flatnonzero(one.trainable_T == trained)[3])

    def alter(arrays: dict[str, Any]) -> None:
        arrays[name][start + token] = change(arrays[name][start + token])

    change_arrays(files_of(run, "student"), alter)
    found = violation(run)
    assert where(found) == (key, token)
    assert found.rule is (rule_if_trained if trained else rule_if_not)


def test_one_teacher_log_probability_of_a_distilled_token_is_named_by_its_advantage(run: Path) -> None:
    _, start, one = sequence(run, SEARCHER)
    token = int(np.flatnonzero(one.trainable_T)[5])
    change_arrays(files_of(run, "student"), lambda arrays: set_at(start + token, -99)(arrays["teacher_logprobs_N"]))
    found = violation(run)
    assert (where(found), found.rule, found.what) == ((SEARCHER, token), Rule.CREDIT, "advantages")


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("group_S", "episodes of nq/q2", Rule.GROUPS),
        ("role_S", "leader", Rule.ROLES),
        ("scored_S", False, Rule.IDS),
    ],
)
def test_one_changed_fact_of_a_sequence_is_named(run: Path, name: str, value: Any, rule: Rule) -> None:
    place, _, _ = sequence(run, SEARCHER)
    change_arrays(files_of(run, "student"), lambda arrays: set_at(place, value)(arrays[name]))
    found = violation(run)
    assert (where(found)[0], found.rule) == (SEARCHER, rule)


def test_a_candidate_moved_to_another_call_is_named(run: Path) -> None:
    place, _, one = sequence(run, ANSWERER)
    assert one.group == "candidates of nq/q2 sample 0 answerer.1 call 0"
    other = "candidates of nq/q2 sample 1 answerer.1 call 0"
    change_arrays(files_of(run, "student"), lambda arrays: set_at(place, other)(arrays["group_S"]))
    found = violation(run)
    assert (where(found)[0], found.rule, found.found) == (ANSWERER, Rule.GROUPS, repr(other))


@pytest.mark.parametrize(
    ("name", "value"), [("agent_S", "searcher.7"), ("question_key_S", "nq/q9"), ("sample_S", 2), ("candidate_S", 4)]
)
def test_a_signal_of_something_that_is_not_in_the_episode_is_named(run: Path, name: str, value: Any) -> None:
    place, _, _ = sequence(run, SEARCHER)
    change_arrays(files_of(run, "student"), lambda arrays: set_at(place, value)(arrays[name]))
    found = violation(run)
    assert found.rule is Rule.ROLES
    assert found.agent in ("searcher.2", "searcher.7")


def test_one_signal_too_few_and_one_too_many_are_named(run: Path) -> None:
    place, start, one = sequence(run, ANSWERER)

    def drop(arrays: dict[str, Any]) -> None:
        for name, array in arrays.items():
            gone = place if name.endswith("_S") else slice(start, start + len(one.ids_T))
            arrays[name] = np.delete(array, gone)

    def double(arrays: dict[str, Any]) -> None:
        for name, array in arrays.items():
            again = slice(0, 1) if name.endswith("_S") else slice(0, arrays["lengths_S"][0])
            arrays[name] = np.concatenate([array, array[again]])

    files = files_of(run, "student")
    kept = files.arrays.read_bytes()
    change_arrays(files, drop)
    found = violation(run)
    assert (where(found), found.rule, found.found) == ((ANSWERER, None), Rule.ROLES, "none")
    files.arrays.write_bytes(kept)
    change_arrays(files, double)
    found = violation(run)
    assert (found.agent, found.rule, found.found) == ("leader.1", Rule.ROLES, "two")


def agent_of(episode: dict[str, Any], name: str) -> dict[str, Any]:
    return next(agent for agent in episode["agents"] if agent["agent"] == name)


@pytest.mark.parametrize("kind", ["prompt", "observation", "action"])
def test_one_id_changed_in_an_episode_is_named(run: Path, kind: str) -> None:
    def change(episode: dict[str, Any]) -> None:
        span = next(span for span in agent_of(episode, "searcher.2")["spans"] if span["kind"] == kind)
        before = agent_of(episode, "searcher.2")["spans"].index(span)
        tokens.append(sum(len(one["ids"]) for one in agent_of(episode, "searcher.2")["spans"][:before]) + 2)
        span["ids"][2] += 1

    tokens: list[int] = []
    change_episode(files_of(run, "student"), 1, change)
    found = violation(run)
    assert (where(found), found.rule) == ((SEARCHER, tokens[0]), Rule.HISTORIES)


def test_an_id_that_no_array_can_hold_is_named(run: Path) -> None:
    def change(episode: dict[str, Any]) -> None:
        agent_of(episode, "searcher.2")["spans"][0]["ids"][5] = 2**62

    change_episode(files_of(run, "student"), 1, change)
    found = violation(run)
    assert (where(found), found.rule, found.expected) == ((SEARCHER, 5), Rule.HISTORIES, str(2**62))


def test_one_id_removed_from_an_episode_is_named(run: Path) -> None:
    def change(episode: dict[str, Any]) -> None:
        spans = agent_of(episode, "searcher.2")["spans"]
        tokens.append(len(spans[0]["ids"]) + 4)
        del spans[1]["ids"][4]

    tokens: list[int] = []
    change_episode(files_of(run, "student"), 1, change)
    found = violation(run)
    assert (where(found)[0], found.rule) == (SEARCHER, Rule.HISTORIES)
    assert found.token is not None and found.token >= tokens[0]


def test_one_log_probability_changed_in_an_episode_is_named(run: Path) -> None:
    def change(episode: dict[str, Any]) -> None:
        action = next(span for span in agent_of(episode, "searcher.2")["spans"] if span["kind"] == "action")
        action["logprobs"][0] -= 0.5

    _, _, one = sequence(run, SEARCHER)
    change_episode(files_of(run, "student"), 1, change)
    found = violation(run)
    assert (where(found), found.rule) == ((SEARCHER, int(one.trainable_T.argmax())), Rule.IDS)
    assert "'<search>" in found.near and "action of call 0" in found.near


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda agent: agent.update(role="leader"), Rule.ROLES),
        (lambda agent: agent["calls"][1].update(prompt_tokens=7), Rule.PREFIXES),
        (lambda agent: agent["calls"][1].update(output_tokens=7), Rule.PREFIXES),
        (lambda agent: agent["calls"][1].update(n=2), Rule.PREFIXES),
        (lambda agent: agent["spans"][2].update(kind="observation"), Rule.HISTORIES),
        (lambda agent: agent["spans"][1].update(kind="action"), Rule.HISTORIES),
        (lambda agent: agent["spans"][2].update(call=1), Rule.HISTORIES),
        (lambda agent: agent["spans"][2].update(ids=None), Rule.HISTORIES),
        (lambda agent: agent["spans"][2].update(logprobs=None), Rule.HISTORIES),
    ],
)
def test_a_transcript_out_of_order_is_named(run: Path, change: Callable[[dict[str, Any]], None], rule: Rule) -> None:
    if rule is Rule.PREFIXES:  # two turns are needed
        stage, agent, line = "teacher", "searcher.1", 1
    else:
        stage, agent, line = "student", "searcher.2", 1
    change_episode(files_of(run, stage), line, lambda episode: change(agent_of(episode, agent)))
    found = violation(run)
    assert (found.stage, found.question_key, found.sample, found.rule) == (stage, "nq/q1", 1, rule)
    assert found.agent in (agent, None)


def test_a_report_that_its_reader_never_saw_is_named(run: Path) -> None:
    def change(episode: dict[str, Any]) -> None:
        for span in agent_of(episode, "answerer.1")["spans"]:
            span["text"] = span["text"].replace("Some say", "All say")

    change_episode(files_of(run, "student"), 1, change)
    found = violation(run)
    assert (found.rule, found.question_key, found.sample, found.agent) == (Rule.REPORTS, "nq/q1", 1, "searcher.2")
    assert found.what == "observations of answerer.1"


def test_one_judged_candidate_is_named(run: Path) -> None:
    def change(facts: dict[str, Any]) -> None:
        entry = next(one for one in facts["judged"] if (one["question_key"], one["sample"]) == ("nq/q2", 0))
        assert entry["candidates"][1] == [0.0, 0.0, None]
        entry["candidates"][1] = [1.0, 0.0, None]

    change_facts(files_of(run, "student"), change)
    found = violation(run)
    assert (where(found)[0], found.rule) == (ANSWERER, Rule.CREDIT)
    assert (found.found, found.expected) == ("1, 0.0, None", "0, 0.0, None")


def test_an_attempt_that_was_never_made_is_named(run: Path) -> None:
    description = run / "stages" / "student" / "stage.json"
    description.write_text(description.read_text().replace('"samples": 3', '"samples": 4'))
    found = violation(run)
    assert (found.rule, found.question_key, found.sample, found.found) == (Rule.GROUPS, "nq/q1", 3, "[0, 1, 2]")


def test_another_plan_than_the_one_carried_out_is_found(run: Path) -> None:
    description = run / "stages" / "student" / "stage.json"
    description.write_text(description.read_text().replace('"coefficient": 0.01', '"coefficient": 0.02'))
    found = violation(run)
    assert (found.rule, found.what, found.agent) == (Rule.CREDIT, "advantages", "searcher.1")


def test_a_difference_within_the_tolerance_is_told_and_passes(run: Path) -> None:
    _, start, one = sequence(run, SEARCHER)
    token = int(one.trainable_T.argmax())

    def round_up(arrays: dict[str, Any]) -> None:
        arrays["weights_N"][start + token] = np.nextafter(arrays["weights_N"][start + token], np.float32(9))

    change_arrays(files_of(run, "student"), round_up)
    assert audit_run(run).violation is not None
    report = audit_run(run, tolerance=1e-6)
    assert report.violation is None
    assert 0 < report.stages[-1].proved.largest_difference < 1e-6
