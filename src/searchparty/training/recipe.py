"""A training recipe: stages in their order, each with its team, policy, teacher, credit, budget and evaluation (contract 10).

Knows names and numbers. What is written once under `defaults` holds for every stage that has such a key and does not say
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from searchparty.config.load import merged
from searchparty.config.recipe import ModelChoice, ModelSpec, RetrieverSpec, RoleSpec, SamplingSpec, Strict, TeamChoice
from searchparty.config.retrieval import IndexChoice
from searchparty.credit.plan import CreditPlan
from searchparty.credit.plans import PLANS

Positive = Annotated[int, Field(ge=1)]
Decay = Annotated[float, Field(ge=0, lt=1)]
Action = Literal["ignore", "warn", "stop"]
"""What an alarm does: nothing, a line in the metrics and on the screen, or the end of the run after the step was recorded."""


def _plan_by_name(value: Any) -> Any:
    """A ready-made plan by its name, or one with changes: `{extends: NAME, roles: {...}}`."""
    name = value.get("extends") if isinstance(value, Mapping) else value
    if not isinstance(name, str):
        return value
    if name not in PLANS:
        raise ValueError(f"no plan named {name}; ready-made ones: {', '.join(PLANS)}; or write one out under credit.roles")
    if isinstance(value, str):
        return PLANS[name]
    changes = {key: change for key, change in value.items() if key != "extends"}
    return merged(PLANS[name].model_dump(), changes)


PlanChoice = Annotated[CreditPlan, BeforeValidator(_plan_by_name)]


def _no_engine(model: ModelSpec | None) -> ModelSpec | None:
    if model is not None and model.engine != "transformers":
        raise ValueError(
            f"engine is {model.engine}, which is for a model that only plays; a policy in training is played by what "
            "sampler.name says, and a teacher is run by the learner; remove engine"
        )
    return model


TrainedModel = Annotated[ModelChoice, AfterValidator(_no_engine)]
"""A model of which the learner needs the weights themselves."""


class ScheduleSpec(Strict):
    """The learning rate's course over optimizer steps, `minibatches` to an update."""

    kind: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: Annotated[int, Field(ge=0)] = 0
    final_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of the peak that is left at the stage's end; for `linear` and `cosine`."""


class LoRASpec(Strict):
    """Train a small addition to some matrices in place of all weights."""

    rank: Positive = 16
    scale: Annotated[float, Field(gt=0)] = 32.0
    modules: Annotated[tuple[str, ...], Field(min_length=1)] = (
        "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj",
    )  # fmt: skip


class LearnerSpec(Strict):
    """How weights are changed. See `learning.settings.LearnerSettings`."""

    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-6
    schedule: ScheduleSpec = ScheduleSpec()
    weight_decay: Annotated[float, Field(ge=0)] = 0.0
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    gradient_clip: Annotated[float, Field(gt=0)] | None = 1.0
    minibatches: Positive = 5
    """Optimizer steps of one update. Not read by an `sft` stage, which has `sequences_per_step`."""
    tokens_per_pass: Positive = 16384
    """Most tokens of one forward pass; the knob for memory."""
    clip_low: Annotated[float, Field(gt=0)] = 0.2
    clip_high: Annotated[float, Field(gt=0)] = 0.2
    entropy: Annotated[float, Field(ge=0)] = 0.0
    """Coefficient of the entropy bonus."""
    old_logprobs: Literal["sampler", "recomputed"] = "recomputed"
    importance_cap: Annotated[float, Field(gt=0)] | None = 2.0
    checkpointed_share: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Share of layers whose activations are computed twice instead of kept."""
    compiled: bool = False
    lora: LoRASpec | None = None


class CriticSpec(Strict):
    """The value model of a stage in which a role learns with `gae`. It is trained beside the policy and saved with it."""

    model: TrainedModel | None = None
    """None puts one number on the policy's own trunk, which the value loss then shapes too. A model, named as a policy is and
    with its tokenizer, becomes a critic of its own: the paper's actor and critic, at twice the memory."""
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-5
    """Its own; the course over optimizer steps is the policy's `learner.schedule`."""
    clip: Annotated[float, Field(gt=0)] = 0.2
    """How far a value may move in one step before its loss no longer falls."""
    coefficient: Annotated[float, Field(gt=0)] = 0.5
    """Weight of the value loss beside the policy's."""
    warmup_steps: Annotated[int, Field(ge=0)] = 0
    """Steps at the stage's beginning in which the critic alone learns and the policy stays as it is."""


class SamplerSpec(Strict):
    """What plays the policy's roles while it is trained."""

    name: Literal["auto", "transformers", "vllm"] = "auto"
    """`auto` takes vLLM on a CUDA card where it is installed, transformers otherwise."""
    memory_share: Annotated[float, Field(gt=0, lt=1)] = 0.3
    """Of the card's memory, for vLLM; the learner needs the rest."""
    context_tokens: Positive | None = None
    """Most tokens of one history; None takes what the model can read."""


class CheckpointSpec(Strict):
    """When the state is saved. A killed run goes on from the latest whole checkpoint."""

    every: Positive = 1
    """Steps between two checkpoints; the last step always has one."""
    keep: Positive = 2
    """The latest so many are kept, and the one with the best development score."""


class DevelopmentSpec(Strict):
    """The score by which the best checkpoint is chosen: exact match, macro over datasets, one candidate a call."""

    questions: Path
    format: str | None = None
    limit: Positive | None = None
    samples: Positive = 1
    every: Positive = 10
    """Steps between two evaluations; the last step always has one."""


class AlarmSpec(Strict):
    """What is done when a run goes wrong in silence (contract 9)."""

    silence: Action = "stop"
    """A role that is to learn has no trainable token, or the teacher scored none of its tokens, or the judge no report."""
    non_finite: Action = "stop"
    """A log-probability is infinite or not a number; its sequence is left out in any case."""
    no_signal: Action = "warn"
    """Every comparison of a role is a singleton, or every advantage is 0."""
    jump: Action = "warn"
    """The share of episodes without a search, or of invalid turns, rises."""
    jump_by: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Rise of such a share above its mean over the last `window` steps that sets off the alarm."""
    window: Positive = 10
    mismatch: Action = "warn"
    """Sampler and learner disagree about the same tokens."""
    mismatch_above: Annotated[float, Field(gt=0)] = 0.1
    """Mean absolute difference of log-probabilities, in nats."""


class JudgeSpec(Strict):
    """An LLM that scores reports, for plans with a reward `given: {judge: ...}` (Prompted Critic)."""

    model: ModelChoice
    prompt: Path | None = None
    """A prompt file with the turn `report` and its fields `task`, `report` and `question`; None takes the built-in one."""
    roles: tuple[str, ...] = ("searcher",)
    """The roles whose agents are judged, each by its last turn."""
    sampling: SamplingSpec = SamplingSpec(temperature=0.0, max_tokens=256)


class PlayedStage(Strict):
    """What every stage has: who plays what over which questions."""

    policy: ModelChoice
    """A model as for `--model`, `stage:NAME` for what an earlier stage of this recipe made, or `run:DIR` (`run:DIR#NAME`) for
    what a finished run made."""
    questions: Path
    format: str | None = None
    limit: Positive | None = None
    """Only the first so many questions of the file."""
    index: IndexChoice | None = None
    prompts: str | None = None
    sampling: SamplingSpec = SamplingSpec()
    roles: dict[str, RoleSpec] = Field(default_factory=dict)
    retriever: RetrieverSpec = RetrieverSpec()
    concurrency: Positive = 160
    """Episodes under way at once."""


class SFTStage(PlayedStage):
    """Imitation of episodes that an expert plays, or that were recorded earlier: starts small models, and distils."""

    kind: Literal["sft"]
    policy: TrainedModel
    teams: tuple[TeamChoice, ...] = ()
    """The teams that the expert plays; the policy learns them all together."""
    expert: ModelChoice | None = None
    """Who plays: `scripted:world-imperfect@DIR`, or any model with the policy's tokenizer."""
    episodes: Path | None = None
    """Recorded episodes in place of an expert that plays: a file, a run directory of `eval`, or `RUN/stages/NAME`. Of their
    questions, those in `questions` are imitated."""
    samples: Positive = 1
    """Episodes per question and team."""
    only_right: bool = False
    """Imitate only episodes whose answer is right."""
    imitate_roles: tuple[str, ...] | None = None
    """Only these roles are imitated, such as the planner; None imitates all that the expert plays."""
    epochs: Positive = 1
    sequences_per_step: Positive = 32
    learner: LearnerSpec = LearnerSpec()
    checkpoint: CheckpointSpec = CheckpointSpec(every=20, keep=1)
    scorer: str = "squad"

    @model_validator(mode="after")
    def _one_source(self) -> SFTStage:
        """Refuse a stage with nothing to imitate, or with two kinds of it."""
        if (self.expert is None) == (self.episodes is None):
            raise ValueError("name either an expert that plays, or episodes that were recorded")
        if self.expert is not None and not self.teams:
            raise ValueError("name the teams that the expert plays under teams")
        if self.episodes is not None and self.teams:
            raise ValueError("teams are what an expert plays; recorded episodes have theirs already, so remove teams")
        return self


class RLStage(PlayedStage):
    """Learning from the policy's own episodes."""

    kind: Literal["rl"]
    policy: TrainedModel
    team: TeamChoice
    credit: PlanChoice
    """The name of a ready-made plan, one with changes (`{extends: multiagent-opd, roles: {...}}`), or a plan written out."""
    teacher: TrainedModel | None = None
    """A frozen model with the policy's tokenizer, named as a policy is."""
    judge: JudgeSpec | None = None
    critic: CriticSpec | None = None
    """For plans with a role that learns with `gae`; `{}` takes a value head on the policy with the values above."""
    reference: TrainedModel | None = None
    """The frozen model that `reference_kl` of a plan holds the policy near, most often what the policy started as."""
    steps: Positive
    """Updates of the policy."""
    questions_per_step: Positive = 32
    samples: Positive = 5
    """Episodes per question."""
    candidates: Positive = 5
    """Completions of an answer call."""
    learner: LearnerSpec = LearnerSpec()
    sampler: SamplerSpec = SamplerSpec()
    development: DevelopmentSpec | None = None
    checkpoint: CheckpointSpec = CheckpointSpec()
    alarms: AlarmSpec = AlarmSpec()
    audit: bool = True
    """Whether every recorded step is audited before its update (`searchparty audit`); a violation stops the run."""
    record_every: Positive = 1
    """Steps between two whose episodes and token arrays are kept for audit and reading."""
    scorer: str = "squad"

    @model_validator(mode="after")
    def _given_scores_come_from_somewhere(self) -> RLStage:
        """Refuse a plan that asks for scores nobody gives, and a judge or teacher that nobody listens to."""
        asked = {name for role in self.credit.roles.values() for name in role.rewards.given}
        if asked - {"judge"}:
            raise ValueError(f"credit asks for a score named {min(asked - {'judge'})}; a stage can only give judge")
        if asked and self.judge is None:
            raise ValueError("credit asks for a judge's score; name the judge's model under judge")
        if self.judge is not None and not asked:
            raise ValueError("judge is set, but credit weighs no score of that name; remove it, or give judge a weight")
        if self.credit.needs_teacher and self.teacher is None:
            raise ValueError("credit needs a teacher; name its model under teacher")
        if self.teacher is not None and not self.credit.needs_teacher:
            raise ValueError("teacher is set, but no role of credit learns from it; remove it")
        if self.credit.needs_reference and self.reference is None:
            raise ValueError("credit has a reference_kl; name the model that the policy is held near under reference")
        if self.reference is not None and not self.credit.needs_reference:
            raise ValueError(
                "reference is set, but no role of credit has a reference_kl; remove it, or give reference_kl a value"
            )
        if self.credit.needs_values and self.critic is None:
            role = next(name for name, one in self.credit.roles.items() if one.needs_values)
            raise ValueError(f"the role {role} learns with values of a critic; add critic, {{}} for a head on the policy")
        if self.critic is not None and not self.credit.needs_values:
            raise ValueError(
                "critic is set, but no role of credit learns with values; remove it, or give a role the estimator gae"
            )
        if self.critic is not None and self.critic.warmup_steps >= self.steps:
            raise ValueError(
                f"critic.warmup_steps is {self.critic.warmup_steps} of {self.steps} steps, so the policy never learns; lower it"
            )
        return self


class EvalStage(PlayedStage):
    """An evaluation of a policy, as `searchparty eval` does it; all of a run's are compared in its report."""

    kind: Literal["eval"]
    team: TeamChoice
    protocol: str | None = None
    """As for `searchparty eval`: fills in what is not said here. Training on what it asks is refused."""
    samples: Positive = 1
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Of its calls; None derives one from the recipe's seed and the stage's name. Stages of equal seeds meet equal chance where
    the same agent is asked the same: common random numbers, which make paired differences less a matter of luck."""
    scorer: str = "squad"
    title: str | None = None
    """Its name in the report; None takes the stage's."""
    baseline: str | None = None
    """The `eval` stage that the report compares this one with; None compares with nothing."""

    @model_validator(mode="before")
    @classmethod
    def _as_the_protocol_says(cls, document: Any) -> Any:
        from searchparty.evaluation.protocols.following import filled_in

        return filled_in(document)


StageSpec = Annotated[SFTStage | RLStage | EvalStage, Field(discriminator="kind")]
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]*$"


class TrainRecipe(Strict):
    """A training run. On one machine equal recipes and equal files give equal runs on a CPU."""

    name: str = "train"
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**63)], ...] = ()
    """If given, the whole recipe is carried out once with each of these in place of `seed`."""
    trackers: tuple[Literal["tensorboard", "wandb", "trackio", "mlflow"], ...] = ()
    """Where metrics go besides `metrics.jsonl`."""
    defaults: dict[str, Any] = Field(default_factory=dict)
    """Keys for every stage that has them. In the resolved recipe they stand in the stages and this is empty."""
    stages: dict[Annotated[str, Field(pattern=_NAME)], StageSpec] = Field(min_length=1)
    """By name, in the order of work."""

    @model_validator(mode="before")
    @classmethod
    def _spread_defaults(cls, document: Any) -> Any:
        """Write the defaults into the stages. A stage that is null is none: so a recipe leaves out one of those it extends."""
        if not isinstance(document, Mapping):
            return document
        if not isinstance(document.get("stages"), Mapping):  # that is the fault; what the defaults are for is not known
            return {key: value for key, value in document.items() if key != "defaults"}
        stages = {name: stage for name, stage in document["stages"].items() if stage is not None}
        defaults = document.get("defaults", {})
        if not isinstance(defaults, Mapping):
            return document
        kinds: dict[Any, type[PlayedStage]] = {"sft": SFTStage, "rl": RLStage, "eval": EvalStage}
        spread = {}
        for name, stage in stages.items():
            named = stage.get("kind") if isinstance(stage, Mapping) else None
            kind = kinds.get(named) if isinstance(named, str) else None
            own = {key: value for key, value in defaults.items() if kind is not None and key in kind.model_fields}
            spread[name] = merged(own, stage) if kind is not None else stage
        every = {key for stage in kinds.values() for key in stage.model_fields}
        unknown = {key: value for key, value in defaults.items() if key not in every}
        return {**document, "defaults": unknown, "stages": spread}

    @field_validator("seeds")
    @classmethod
    def _each_seed_once(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        """Refuse a seed that stands twice: it would have one directory for two runs."""
        twice = [seed for place, seed in enumerate(seeds) if seed in seeds[:place]]
        if twice:
            raise ValueError(f"{twice[0]} stands twice; give each seed once")
        return seeds

    @field_validator("defaults")
    @classmethod
    def _defaults_are_for_some_stage(cls, left: dict[str, Any]) -> dict[str, Any]:
        """Refuse what was written into no stage."""
        every = list(dict.fromkeys(key for kind in (SFTStage, RLStage, EvalStage) for key in kind.model_fields))
        lines = []
        for key in left:
            near = get_close_matches(key, every, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(every)}"
            lines.append(f"no stage has a key {key}; {hint}")
        if lines:
            raise ValueError("\n".join(lines))
        return left
