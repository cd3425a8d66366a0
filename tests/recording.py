"""Factories for recorded training runs: scripted episodes of both teams, credited as the trainer does and written to disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from playing import PARIS, good_lines, play_lines
from searchparty.credit.assign import assign_credit
from searchparty.credit.evidence import Evidence
from searchparty.credit.gathering import sequences_to_score
from searchparty.credit.plan import CreditPlan
from searchparty.credit.plans import CHAINED_RL, MULTIAGENT_OPD
from searchparty.credit.sequences import last_turn_taken
from searchparty.episodes.types import Episode, SpanKind
from searchparty.evaluation.scorers import SCORERS
from searchparty.evaluation.scoring import score_episode
from searchparty.teams.chained import Chained
from searchparty.teams.hierarchical import Hierarchical
from searchparty.training.grouping import group_name
from searchparty.training.records import Judged, Scored, StepFiles, StepRecord, write_step

SAMPLES = CANDIDATES = 3
RIGHT, WRONG, BROKEN = "<answer>Paris</answer>", "<answer>Lyon</answer>", "Paris, I think"
ANSWERS = ([RIGHT, WRONG, BROKEN], [WRONG, BROKEN, WRONG], [RIGHT, RIGHT, RIGHT])
"""Per sample: a mixed group, one that is equal up to its format, one that teaches nothing."""
SEARCHES = ["<search>capital of France</search>", "<search>largest city of France</search>"]
REPORTS = ["<report>Paris is the capital.</report>", "<report>Some say <answer>Lyon</answer>, wrongly.</report>"]


def chained_episodes(questions: Sequence[str] = ("q1", "q2")) -> list[Episode]:
    """Every sample of the questions. The first searches twice, the others once, as the third did not before its report."""
    lines = [[*SEARCHES, REPORTS[1]], [SEARCHES[0], REPORTS[0]], [REPORTS[0]]]
    return [
        _played(Chained(candidates=CANDIDATES), question, sample, searcher=lines[sample])
        for question in questions
        for sample in range(SAMPLES)
    ]


def hierarchical_episodes(questions: Sequence[str] = ("q1", "q2")) -> list[Episode]:
    """Every sample of the questions: two Searchers at once, then a third, with two reports selected."""
    leader = ["<task>Find the capital.</task><task>Find the city.</task>", "<task>Check it.</task>", "<select>1, 2</select>"]
    searcher = [*SEARCHES, *REPORTS, "<report>It is so.</report>"]
    return [
        _played(Hierarchical(candidates=CANDIDATES), question, sample, leader=leader, searcher=searcher)
        for question in questions
        for sample in range(SAMPLES)
    ]


def _played(team: Any, question: str, sample: int, **lines: Sequence[str]) -> Episode:
    script = good_lines(answerer=[ANSWERS[sample]], **lines)
    episode = play_lines(team, script, question=replace(PARIS, id=question))
    episode.sample = sample
    draw = np.random.default_rng([sample, *question.encode()])
    for transcript in episode.agents:
        for span in transcript.spans:
            if span.kind is SpanKind.ACTION:
                span.logprobs = (-draw.exponential(size=len(span.ids or ()))).tolist()
    return episode


def credited(episodes: Sequence[Episode], plan: CreditPlan, step: int = 1, **more: Any) -> StepRecord:
    """What the trainer would record of these episodes; a teacher's log-probabilities are drawn at random."""
    golden = {episode.question_key: PARIS.golden_answers for episode in episodes}
    scored = [score_episode(episode, PARIS.golden_answers, SCORERS["squad"]) for episode in episodes]
    draw = np.random.default_rng(step)
    teacher = {
        one.key: Scored(one.ids_T, np.where(one.trainable_T, -draw.exponential(size=len(one.ids_T)), 0).astype(np.float32))
        for one in sequences_to_score(episodes, plan, lambda role: role.needs_teacher)
    }
    reference = {
        one.key: Scored(one.ids_T, np.where(one.trainable_T, -draw.exponential(size=len(one.ids_T)), 0).astype(np.float32))
        for one in sequences_to_score(episodes, plan, lambda role: role.needs_reference)
    }
    evidence = Evidence(
        {one.key: one.candidates for one in scored},
        {key: one.logprobs_T for key, one in teacher.items()},
        reference_logprobs={key: one.logprobs_T for key, one in reference.items()},
        **more,
    )
    credit = assign_credit(episodes, plan, evidence)
    transcripts = {(one.question_key, one.sample, agent.agent): agent for one in episodes for agent in one.agents}
    groups = {
        signal.key: group_name(
            plan.roles[signal.role],
            signal.key,
            last_turn_taken(transcripts[signal.key.question_key, signal.key.sample, signal.key.agent])[0].call,
        )
        for signal in credit.signals
    }
    judged = {
        one.key: [Judged(candidate.exact_match, candidate.f1, candidate.problem) for candidate in one.candidates]
        for one in scored
    }
    return StepRecord(step, episodes, credit.signals, groups, golden, judged, teacher, evidence.scores, reference=reference)


def write_run(path: Path) -> Path:
    """A run directory: an sft stage of which nothing is recorded, a chained stage of two steps, a hierarchical one of one."""
    path.mkdir(parents=True)
    (path / "recipe.resolved.yaml").write_text("stages: {start: {}, teacher: {}, student: {}}\n")
    _describe(path, "start", {"kind": "sft"})
    write_stage(path, "teacher", CHAINED_RL, [chained_episodes(), chained_episodes(("q3",))])
    write_stage(path, "student", MULTIAGENT_OPD, [hierarchical_episodes()])
    return path


def write_stage(path: Path, name: str, plan: CreditPlan, steps: Sequence[Sequence[Episode]]) -> None:
    """One rl stage of a run, with a record of every step."""
    credit = plan.model_dump(mode="json")
    more = {"credit": credit, "scorer": "squad", "teacher_temperature": 1.0, "samples": SAMPLES}
    _describe(path, name, {"kind": "rl", **more})
    for number, episodes in enumerate(steps, start=1):
        write_step(path / "stages" / name / "episodes", credited(episodes, plan, number))


def _describe(path: Path, name: str, facts: dict[str, Any]) -> None:
    folder = path / "stages" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "stage.json").write_text(json.dumps({"format": 1, "name": name, **facts}))


def files_of(run: Path, stage: str, step: int = 1) -> StepFiles:
    """The files of a recorded step."""
    return StepFiles(run / "stages" / stage / "episodes", step)


def change_arrays(files: StepFiles, change: Callable[[dict[str, Any]], None]) -> None:
    """Write the arrays of a step anew, after `change` has worked on them."""
    with np.load(files.arrays) as loaded:
        arrays = {name: loaded[name] for name in loaded.files}
    change(arrays)
    with files.arrays.open("wb") as stream:
        np.savez_compressed(stream, **arrays)


def change_episode(files: StepFiles, number: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Write one line of a step's episodes anew, after `change` has worked on its record."""
    lines = files.episodes.read_text(encoding="utf-8").splitlines()
    record = json.loads(lines[number])
    change(record)
    lines[number] = json.dumps(record, ensure_ascii=False)
    files.episodes.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def change_facts(files: StepFiles, change: Callable[[dict[str, Any]], None]) -> None:
    """Write the facts of a step anew, after `change` has worked on them."""
    facts = json.loads(files.facts.read_text(encoding="utf-8"))
    change(facts)
    files.facts.write_text(json.dumps(facts), encoding="utf-8")
