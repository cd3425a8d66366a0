"""A recipe: everything that decides what a run does, in one YAML file (contract 10).

Unknown keys are refused; the complete recipe, defaults included, is written into the run directory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from searchparty.config.retrieval import IndexChoice
from searchparty.config.strict import Strict as Strict


class ModelSpec(Strict):
    """Which model, and how it is reached."""

    spec: str
    """`smollm2`, a Hugging Face id, a folder, a GGUF file, `http://host:port/v1` (with `#model` if the server has several), or
    `scripted:NAME`."""
    model_name: str | None = None
    """For an HTTP endpoint, the same as `#model`."""
    tokenizer: str | None = None
    """For an HTTP endpoint that takes token ids: the folder or Hugging Face id whose tokenizer and chat template it uses."""
    route: Literal["auto", "tokens", "chat"] = "auto"
    """For an HTTP endpoint: exchange token ids, exchange chat text, or find out which it offers."""
    timeout: Annotated[float, Field(gt=0)] = 120.0
    """For an HTTP endpoint: seconds that one request may take, all attempts included."""
    device: str | None = None
    """For an in-process model: `cpu`, `cuda`, `cuda:1`; None takes a CUDA card if there is one."""
    dtype: Literal["float32", "bfloat16"] | None = None
    """For an in-process model: None takes bfloat16 on CUDA and float32 on CPUs, most of which have no bfloat16 arithmetic."""
    max_batch_tokens: Annotated[int, Field(ge=1)] = 32768
    """For an in-process model: most tokens of all histories in one batch; the knob for memory."""
    engine: Literal["transformers", "vllm"] = "transformers"
    """For an in-process model that is not in training (see `sampler` for one that is): `vllm` is many times faster on a CUDA
    card, but its numbers depend on the batch in their last bits."""
    memory_share: Annotated[float, Field(gt=0, le=1)] | None = None
    """For `engine: vllm`: share of the card's memory, weights included; it must be free. None takes half."""

    @model_validator(mode="after")
    def _no_idle_key(self) -> ModelSpec:
        """Refuse a key that this form of model would not look at."""
        is_http, is_script = self.spec.startswith(("http://", "https://")), self.spec.startswith("scripted:")
        idle = [] if is_http else ["tokenizer", "route", "model_name", "timeout"]
        idle += ["device", "dtype", "max_batch_tokens", "engine"] if is_http or is_script else []
        idle += ["device", "max_batch_tokens"] if self.engine == "vllm" else ["memory_share"]
        given = [key for key in idle if getattr(self, key) != type(self).model_fields[key].default]
        if given:
            raise ValueError(f"{', '.join(given)} means nothing for the model {self.spec}; remove it")
        return self


class SamplingSpec(Strict):
    """How tokens are drawn."""

    temperature: Annotated[float, Field(ge=0)] = 1.0
    """0 takes the most probable token each time."""
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=0)] = 0
    """0 means no limit."""
    max_tokens: Annotated[int, Field(ge=1, le=2**31)] = 512
    """Most tokens of one turn."""


class SamplingChange(Strict):
    """What of the sampling is different; what is not named stays as it is in the recipe."""

    temperature: Annotated[float, Field(ge=0)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None


def _spec_from_text(value: Any) -> Any:
    return {"spec": value} if isinstance(value, str) else value


def _team_from_text(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


ModelChoice = Annotated[ModelSpec, BeforeValidator(_spec_from_text)]


class RoleSpec(Strict):
    """What one role does differently from the rest of the team."""

    prompt: Path | None = None
    """A prompt file in place of the team's own."""
    model: ModelChoice | None = None
    sampling: SamplingChange = SamplingChange()


class TeamSpec(BaseModel):
    """Name of a team and its options; the options are checked against the team's own fields."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str
    """`direct`, `rag`, `chained`, `hierarchical`, or `path/to/file.py:ClassName`."""

    @property
    def options(self) -> dict[str, Any]:
        """Everything but the name."""
        return dict(self.model_extra or {})


TeamChoice = Annotated[TeamSpec, BeforeValidator(_team_from_text)]


class CacheSpec(Strict):
    """A file of recorded answers, so that a run can be repeated without its retriever."""

    path: Path
    """The SQLite file; made where something is recorded."""
    mode: Literal["record", "record-missing", "replay"] = "record-missing"
    """Ask always, ask where there is no recorded answer, or never ask: with `replay`, `index` is not even opened."""
    identity: str | None = None
    """For `replay`: whose answers, if several retrievers are recorded; `searchparty retriever cache PATH` lists them."""

    @model_validator(mode="after")
    def _no_idle_key(self) -> CacheSpec:
        if self.identity is not None and self.mode != "replay":
            raise ValueError(f"identity means nothing for the mode {self.mode}; remove it")
        return self


def _cache_from_text(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


class RetrieverSpec(Strict):
    """How a retriever is asked; a local index needs none of this but the cache."""

    cache: Annotated[CacheSpec, BeforeValidator(_cache_from_text)] | None = None
    """Record the answers in this file, or replay them from it."""
    dialect: Literal["search-r1", "single-query", "questions", "batch-search", "queries", "native"] = "search-r1"
    """In which form a server is asked; see `searchparty.retrieval.dialects`."""
    timeout: Annotated[float, Field(gt=0)] = 30.0
    """Seconds that one query may take, all attempts included."""
    attempts: Annotated[int, Field(ge=1)] = 4
    """How many times a failed request is sent before it is recorded as failed."""
    break_after: Annotated[int, Field(ge=0)] = 10
    """Failed requests in a row after which a server is left alone for a while and searches fail at once; 0 for never."""
    break_seconds: Annotated[float, Field(gt=0)] = 5.0
    """How long it is left alone before one request tries it again."""


class TeamRecipe(Strict):
    """A team that is ready to play: what every command needs that lets one work."""

    team: TeamChoice
    model: ModelChoice
    """The model that plays every role, except those with one of their own under `roles`."""
    index: IndexChoice | None = None
    """Folder of an index, address of a retriever, a YAML file that puts one together, or what would stand in that file; teams
    without retrieval need none."""
    prompts: str | None = None
    """A folder of prompt files with the names of the team's own ones, or `world` for the compact prompts of the generated
    world; None takes the team's own."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    sampling: SamplingSpec = SamplingSpec()
    roles: dict[str, RoleSpec] = Field(default_factory=dict)
    prices: Path | None = None
    """A file of prices, for what an episode costs in USD; it must name every model that plays."""
    retriever: RetrieverSpec = RetrieverSpec()


class EvalRecipe(TeamRecipe):
    """One evaluation run. Equal recipes and equal files give equal episodes."""

    questions: Path
    """A file of questions in any known format."""
    format: str | None = None
    """Its format; None finds it by content."""
    protocol: str | None = None
    """`multiagent-opd`, `mao-arag`, `search-r1`, or a path of one's own: fills in what is not said here, and refuses what
    contradicts it."""
    samples: Annotated[int, Field(ge=1)] = 1
    """Attempts per question."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Only the first so many questions of the file."""
    concurrency: Annotated[int, Field(ge=1)] = 32
    """Episodes under way at once. Changes how long the run takes, not what it gives."""
    scorer: str = "squad"
    """The official script whose normalisation decides: squad, hotpotqa, 2wiki, musique, triviaqa."""
