"""From what a recipe or a command says under `index` to a retriever that is ready."""

from __future__ import annotations

from pathlib import Path

from searchparty.config.retrieval import RerankSpec, RetrieverPlan, SourceSpec
from searchparty.errors import UserError
from searchparty.retrieval.fusion import FusedRetriever, Weighted
from searchparty.retrieval.manifest import load_manifest
from searchparty.retrieval.opening import is_address, open_retriever
from searchparty.retrieval.reranking import Ranker, RerankedRetriever
from searchparty.retrieval.retrying import Patience
from searchparty.retrieval.types import Retriever
from searchparty.retrieval.unique_titles import OnePerTitle


def plan_of(choice: str | RetrieverPlan) -> RetrieverPlan:
    """The plan that is written out, is in the YAML file named, or has the index or server named as its only source.

    Raises:
        UserError: the file is not there or holds faults, one line each.
    """
    if isinstance(choice, RetrieverPlan):
        return choice
    if choice.endswith((".yaml", ".yml")):
        # Imported here because reading YAML takes longer to import than an index takes to open.
        from searchparty.config.load import load_recipe

        return load_recipe(RetrieverPlan, Path(choice), [], {})
    return RetrieverPlan(sources=[SourceSpec(index=choice)])


def plan_with_device(choice: str, device: str | None) -> RetrieverPlan:
    """The plan of a name, its only source on a device.

    Args:
        choice: see `plan_of`.
        device: see `SourceSpec.device`; None leaves what the plan says.

    Raises:
        UserError: as `plan_of`, or the plan has several sources, or one whose device it names itself.
    """
    plan = plan_of(choice)
    if device is None:
        return plan
    if len(plan.sources) > 1 or plan.sources[0].device is not None:
        raise UserError(f"{choice}: names its sources and their devices itself; write device: {device} there")
    return plan.model_copy(update={"sources": [plan.sources[0].model_copy(update={"device": device})]})


def passages_of(plan: RetrieverPlan) -> int | None:
    """How many passages the largest source has; None if one is a server or a collection.

    Raises:
        UserError: an index that cannot be used.
    """
    if any(is_address(source.index) for source in plan.sources):
        return None
    return max(load_manifest(Path(source.index)).passages for source in plan.sources)


def open_choice(choice: str | RetrieverPlan, *, dialect: str = "search-r1", patience: Patience | None = None) -> Retriever:
    """Open whatever `index` says.

    Args:
        choice: a name or a plan.
        dialect, patience: for servers, see `open_retriever`.

    Raises:
        UserError: an index, a server's address or a model that cannot be used.
    """
    plan = plan_of(choice)
    opened = [_open_source(source, dialect, patience) for source in plan.sources]
    retriever = opened[0]
    if len(opened) > 1:
        parts = [Weighted(one, source.weight) for one, source in zip(opened, plan.sources, strict=True)]
        retriever = FusedRetriever(parts, plan.fusion, plan.depth)
    if plan.one_per_title:  # before any model reads the passages: those that are taken out need not be read
        retriever = OnePerTitle(retriever)
    if plan.rerank is not None:
        retriever = RerankedRetriever(retriever, _open_ranker(plan.rerank), plan.rerank.candidates)
    return retriever


def _open_source(source: SourceSpec, dialect: str, patience: Patience | None) -> Retriever:
    return open_retriever(
        source.index, dialect=dialect, patience=patience, model=source.model, device=source.device, search=source.search
    )


def _open_ranker(spec: RerankSpec) -> Ranker:
    # Imported here because torch takes long to import, and most retrievers rank nothing again.
    if spec.kind == "cross-encoder":
        from searchparty.retrieval.rankers.cross_encoder import CrossEncoderRanker

        return CrossEncoderRanker(spec.model, device=spec.device, batch=spec.batch)
    from searchparty.retrieval.rankers.colbert import ColBERTEncoder
    from searchparty.retrieval.rankers.late_interaction import LateInteractionRanker

    return LateInteractionRanker(ColBERTEncoder(spec.model, device=spec.device, batch=spec.batch))
