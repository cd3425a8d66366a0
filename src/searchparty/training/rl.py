"""An `rl` stage: roll out, judge, score, assign credit, update, record; step by step until the budget is used up.

Reads like the flow of the design: questions → episodes → credit → signals → learner → weights. Knows no algorithm by name. A
step leaves its record and its line in the metrics before its checkpoint, and a resumed run removes what lies beyond the latest
checkpoint, so that a process killed at any instant loses at most the steps since then.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from searchparty.config.recipe import ModelSpec
from searchparty.credit.assign import assign_credit
from searchparty.credit.result import CreditResult
from searchparty.evaluation.scorers import Scorer, scorer_named
from searchparty.evaluation.scoring import score_episode
from searchparty.evaluation.staging import Models, Stage, set_stage
from searchparty.learning.checkpoints import CheckpointFolder
from searchparty.learning.faults import LearningFault
from searchparty.learning.metrics import UpdateMetrics
from searchparty.questions.types import Question
from searchparty.teams.escaping import without_surrogates
from searchparty.teams.registry import find_team
from searchparty.training.alarms import Alarm, Alarms
from searchparty.training.audit import audit_step
from searchparty.training.card_memory import begin_memory, memory_numbers
from searchparty.training.development import measure_development
from searchparty.training.judge import open_judge
from searchparty.training.listening import TrainingStopped, TrainListener
from searchparty.training.measures import step_numbers, watched_shares
from searchparty.training.order import derived_seed, questions_of_step
from searchparty.training.planner_prices import check_loaded_prices
from searchparty.training.playing import WithPolicy, load_stage_questions, team_recipe, temperatures
from searchparty.training.policy import MODEL, Policy, open_policy
from searchparty.training.recipe import RLStage
from searchparty.training.recording import step_record
from searchparty.training.records import StepRecord, remove_steps, write_step
from searchparty.training.rollout import roll_out
from searchparty.training.run_directory import MetricsLog, StageDirectory
from searchparty.training.teacher import Teacher, open_teacher
from searchparty.training.witnesses import Witnesses


@dataclass
class RLTrainer:
    """One stage, opened. `run` carries it out."""

    name: str
    spec: RLStage
    """With all references to other stages and runs resolved to folders."""
    seed: int
    place: StageDirectory
    metrics: MetricsLog
    listener: TrainListener
    policy: Policy
    models: Models
    """The policy, and what else plays a role; closed with the trainer."""
    witnesses: Witnesses
    stage: Stage
    """The team with as many candidates as training takes."""
    development: Stage | None
    """The same with one candidate."""
    questions: list[Question]
    development_questions: list[Question]
    scorer: Scorer
    alarms: Alarms

    async def run(self) -> dict[str, Any]:
        """Train to the last step, from the latest checkpoint if there is one. Returns which checkpoint is the stage's model.

        Raises:
            TrainingStopped: an alarm or a fault of the numbers; the earlier checkpoints are there.
            UserError: memory or disk is full.
        """
        spec = self.spec
        checkpoints = CheckpointFolder(self.place.checkpoints, keep_last=spec.checkpoint.keep)
        done = await self._resume(checkpoints)
        self.listener.on_stage(self.name, "rl", spec.steps, done)
        if done == 0 and self.development is not None:
            await self._develop(0)
        for step in range(done + 1, spec.steps + 1):
            line, alarms = await self._step(step)
            self.metrics.append(line)
            self.listener.on_step(line)
            last = step == spec.steps
            score = None
            if spec.development is not None and (last or step % spec.development.every == 0):
                score = await self._develop(step)
            if last or score is not None or step % spec.checkpoint.every == 0:
                checkpoints.save(step, self.policy.save, score)
            self._sound(alarms, step)
        best = checkpoints.best() or checkpoints.latest().checkpoint
        assert best is not None
        return {"model": f"stages/{self.name}/checkpoints/{best.folder.name}/{MODEL}", "step": best.step, "score": best.score}

    async def _resume(self, checkpoints: CheckpointFolder) -> int:
        """Go back to the latest whole checkpoint and forget what lies beyond it. Returns its step, 0 if there is none."""
        found = checkpoints.latest()
        for skipped in found.skipped:
            self.listener.on_message(skipped)
        done = 0 if found.checkpoint is None else found.checkpoint.step
        if found.checkpoint is not None:
            await self.policy.load(found.checkpoint.folder)
        remove_steps(self.place.episodes, done)
        self.metrics.keep(lambda line: line["stage"] != self.name or (done > 0 and line["step"] <= done))
        known = [line for line in self.metrics.lines() if line["stage"] == self.name and line["kind"] == "step"]
        for line in known:
            self.alarms.remember(line["watched"])
        if len(known) < done:
            self.listener.on_message(
                f"stage {self.name}: the metrics of {done - len(known)} of its first {done} steps are gone"
            )
        return done

    async def _step(self, step: int) -> tuple[dict[str, Any], list[Alarm]]:
        started, spec = time.perf_counter(), self.spec
        begin_memory(self.policy.weights.device)
        questions = questions_of_step(self.questions, spec.questions_per_step, step, self.seed)
        seed = derived_seed(self.seed, "step", step)
        played = await roll_out(
            self.stage,
            questions,
            spec.samples,
            seed=seed,
            concurrency=spec.concurrency,
            on_episode=lambda done, total: self.listener.on_work("sampling", done, total),
        )
        golden = {question.key: list(map(without_surrogates, question.golden_answers)) for question in questions}
        scored = [score_episode(episode, golden[episode.question_key], self.scorer) for episode in played.episodes]

        clock = time.perf_counter()
        if self.witnesses.are_slow:
            self.listener.on_work("scoring", 0, 1)
        try:
            testimony = await self.witnesses.testify(played.episodes, spec.credit, seed)
        except LearningFault as fault:
            raise TrainingStopped(
                f"stage {self.name}, step {step}: {fault}. See {self.place.checkpoints} for the last state"
            ) from None
        scoring_seconds = time.perf_counter() - clock

        clock = time.perf_counter()
        credit = assign_credit(played.episodes, spec.credit, testimony.evidence(scored))
        record = step_record(step, seed, played, scored, golden, credit, testimony, spec)

        is_kept = step % spec.record_every == 0 or step == spec.steps
        if spec.audit and is_kept:
            self._audit(record)
        findings = [*credit.findings, *testimony.findings()]
        early = self.alarms.of_findings(findings)
        if any(alarm.action == "stop" for alarm in early):
            write_step(self.place.episodes, record)
            self._sound(early, step)
        credit_seconds = time.perf_counter() - clock

        clock = time.perf_counter()
        self.listener.on_work("update", 0, 1)
        update = self._update(credit, step, record)
        await self.policy.publish()
        update_seconds = time.perf_counter() - clock

        watched = watched_shares(scored)
        mismatch = {role: metrics.mismatch for role, metrics in update.roles.items()}
        alarms = self.alarms.hear(findings, watched, mismatch)
        if is_kept or alarms:
            write_step(self.place.episodes, record)
        seconds = {
            "sampling": played.seconds,
            "retrieval": played.retrieval_seconds,
            "scoring": scoring_seconds,
            "credit": credit_seconds,
            "update": update_seconds,
            "total": time.perf_counter() - started,
        }
        line = {
            "stage": self.name,
            "step": step,
            "kind": "step",
            **step_numbers(credit, update, scored, watched),
            "repeated_episodes": played.repeated,
            "unscored": testimony.failures[:5],
            "alarms": [str(alarm) for alarm in alarms],
            "seconds": {name: round(value, 4) for name, value in seconds.items()},
            **memory_numbers(self.policy.weights.device),
        }
        return line, alarms

    def _audit(self, record: StepRecord) -> None:
        """Stop before anything is learned from a step that is not what it claims to be."""
        violation = audit_step(record, self.spec.credit, self.scorer, samples=self.spec.samples, first_only=True).violation
        if violation is not None:
            write_step(self.place.episodes, record)
            raise TrainingStopped(
                f"stage {self.name}, step {record.step}: the audit found a violation, nothing was learned from the step. "
                f"{violation}. The step is kept in {self.place.episodes}; this is a fault of the software, please report it"
            )

    def _update(self, credit: CreditResult, step: int, record: StepRecord) -> UpdateMetrics:
        """One update. If it fails, what it was to learn from is written down before the run stops."""
        try:
            return self.policy.learner.update(credit.signals)
        except LearningFault as fault:
            write_step(self.place.episodes, record)
            findings = "".join(f"; {finding}" for finding in credit.findings[:3])
            raise TrainingStopped(
                f"stage {self.name}, step {step}: {fault}{findings}. The step's episodes are kept in {self.place.episodes}, "
                f"the last good state in {self.place.checkpoints}"
            ) from None

    async def _develop(self, step: int) -> float:
        """Score the weights as they are now; adds a line to the metrics."""
        spec = self.spec
        assert spec.development is not None and self.development is not None
        measured = await measure_development(
            self.development,
            self.development_questions,
            spec.development,
            self.scorer,
            seed=derived_seed(self.seed, "development"),
            concurrency=spec.concurrency,
            listener=self.listener,
        )
        await self.policy.publish()
        line = {"stage": self.name, "step": step, "kind": "development", **measured}
        self.metrics.append(line)
        self.listener.on_step(line)
        return float(measured["score"])

    def _sound(self, alarms: Sequence[Alarm], step: int) -> None:
        """Say them; raises TrainingStopped if one of them stops the run. Those of credit do so before the update."""
        for alarm in alarms:
            self.listener.on_message(f"stage {self.name}, step {step}: {alarm}")
        stopping = [alarm for alarm in alarms if alarm.action == "stop"]
        if stopping:
            raise TrainingStopped(
                f"stage {self.name}, step {step}: stopped by an alarm: {stopping[0]}. Set stages.{self.name}.alarms."
                f"{stopping[0].name}=warn and use --resume to go on all the same"
            )

    async def close(self) -> None:
        """Free models and retriever."""
        await self.policy.close()
        await self.models.close()
        await self.stage.close()
        if self.development is not None:
            await self.development.close()
        await self.witnesses.close()


async def open_rl(
    name: str, spec: RLStage, seed: int, place: StageDirectory, metrics: MetricsLog, listener: TrainListener
) -> RLTrainer:
    """Load everything that the stage needs; the cheap parts first.

    Raises:
        UserError: for anything that is missing or does not fit.
    """
    scorer = scorer_named(spec.scorer)
    questions = load_stage_questions(spec)
    development_questions = [] if spec.development is None else load_stage_questions(spec.development)
    roles = find_team(spec.team.name).tags
    policy = open_policy(
        spec.policy,
        spec.learner,
        seed=derived_seed(seed, "learner") % 2**32,
        total_steps=spec.steps * spec.learner.minibatches,
        temperatures=temperatures(spec, roles),
        sampler=spec.sampler,
        critic=spec.critic,
    )
    models = WithPolicy(policy.model)
    stage = set_stage(team_recipe(spec, spec.team, seed, spec.candidates), models)
    check_loaded_prices(stage, spec.credit.planner_costs)
    development = None if spec.development is None else set_stage(team_recipe(spec, spec.team, seed, 1), models)
    witnesses = Witnesses(
        policy.learner,
        _frozen("teacher", spec.teacher, spec, policy),
        _frozen("reference", spec.reference, spec, policy),
        None if spec.judge is None else open_judge(spec.judge),
    )
    return RLTrainer(
        name, spec, seed, place, metrics, listener, policy, models, witnesses, stage, development, questions,
        development_questions, scorer, Alarms(spec.alarms),
    )  # fmt: skip


def _frozen(part: str, model: ModelSpec | None, spec: RLStage, policy: Policy) -> Teacher | None:
    """A model that only scores; `part` is its key in the recipe."""
    if model is None:
        return None
    assert policy.model.chat is not None
    return open_teacher(_on(model, spec.policy), policy.model.chat.tokenizer, spec.learner.tokens_per_pass, part)


def _on(teacher: ModelSpec, policy: ModelSpec) -> ModelSpec:
    """The teacher on the policy's device and in its precision, unless its own are given."""
    if teacher.spec.startswith(("http://", "https://")):
        return teacher
    return teacher.model_copy(update={"device": teacher.device or policy.device, "dtype": teacher.dtype or policy.dtype})
