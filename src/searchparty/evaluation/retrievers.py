"""From what a recipe or a command says under `index` to a retriever that is ready."""

from __future__ import annotations

from pathlib import Path

from searchparty.config.load import load_recipe
from searchparty.config.retrieval import RerankSpec, RetrieverPlan, SourceSpec
from searchparty.retrieval.fusion import FusedRetriever, Weighted
from searchparty.retrieval.opening import open_retriever
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
        return load_recipe(RetrieverPlan, Path(choice), [], {})
    return RetrieverPlan(sources=[SourceSpec(index=choice)])


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
