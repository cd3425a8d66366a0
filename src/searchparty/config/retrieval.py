"""A retriever that is put together: one or several indexes or servers, fused, one passage a title, re-ranked.

In a recipe it stands under `index`, or in a YAML file of its own that `index` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from searchparty.config.strict import Strict


class SourceSpec(Strict):
    """One index or server, and how much it counts."""

    index: str
    """Folder of an index, or address of a server."""
    weight: Annotated[float, Field(gt=0)] = 1.0
    """How much its ranking counts in the fusion."""
    model: str | None = None
    """For a dense index: where its encoder is now; None looks where it was when the index was built."""
    device: str | None = None
    """For a dense index: `cpu`, or cards such as `cuda:0,cuda:1`, on which search is always exact; None is the CPU."""
    search: Literal["exact"] | None = None
    """For a dense index: `exact` passes over its FAISS index."""


class RerankSpec(Strict):
    """A model that puts the best candidates into an order of its own."""

    kind: Literal["cross-encoder", "late-interaction"]
    """`late-interaction` takes a ColBERT model."""
    model: str
    """A Hugging Face name or a folder."""
    candidates: Annotated[int, Field(ge=1, le=10_000)] = 50
    """Hits that are scored again for each query."""
    device: str | None = None
    """`cpu`, `cuda`, `cuda:1`; None is the CPU."""
    batch: Annotated[int, Field(ge=1)] = 32
    """Passages scored at a time."""


def _source_from_text(value: Any) -> Any:
    return {"index": value} if isinstance(value, str) else value


class RetrieverPlan(Strict):
    """From sources to hits: fuse, keep one passage a title, re-rank."""

    sources: Annotated[list[Annotated[SourceSpec, BeforeValidator(_source_from_text)]], Field(min_length=1)]
    """Indexes and servers; a bare word is an index."""
    fusion: Literal["reciprocal-rank", "weighted"] = "reciprocal-rank"
    """How the rankings of several sources become one."""
    depth: Annotated[int, Field(ge=1, le=10_000)] = 100
    """Hits taken from each of several sources."""
    rerank: RerankSpec | None = None
    one_per_title: bool = False
    """Of the passages of one title, keep the one that the sources rank first; a model re-ranks what is left."""

    @model_validator(mode="after")
    def _no_idle_key(self) -> RetrieverPlan:
        """Refuse what fuses if there is nothing to fuse."""
        if len(self.sources) == 1:
            given = [key for key in ("fusion", "depth") if getattr(self, key) != type(self).model_fields[key].default]
            if self.sources[0].weight != 1.0:
                given.append("weight")
            if given:
                raise ValueError(f"{', '.join(given)} means nothing for a single source; remove it")
        return self


IndexChoice = Annotated[
    Annotated[str, Tag("name")] | Annotated[RetrieverPlan, Tag("plan")],
    Discriminator(lambda value: "plan" if isinstance(value, Mapping | RetrieverPlan) else "name"),
]
"""A folder, an address or a YAML file by name, or a plan written out."""
