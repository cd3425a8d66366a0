"""Speed and memory of BM25: building, opening, searching one by one and in batches, beside bm25s' own numpy search.

    python bench/retrieval.py [CORPUS] [--queries QUESTIONS.jsonl] [-k 3]

Without arguments the sample in the package is used, which is too small for more than a first look. Each stage runs in a process
of its own, so that peak memory is that stage's alone. Rates are the best of three passes over the queries.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from searchparty.files import read_jsonl
from searchparty.questions.sample import sample_corpus, sample_questions

PASSES = 3
BATCH = 256


def in_own_process(stage: Callable[..., dict[str, float]], *arguments: Any) -> dict[str, float]:
    """Run a stage in a fresh process; its figures and its peak memory in MB."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_with_peak_memory, stage, arguments).result()


def _with_peak_memory(stage: Callable[..., dict[str, float]], arguments: tuple[Any, ...]) -> dict[str, float]:
    figures = stage(*arguments)
    return {**figures, "peak memory, MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def build(corpus: Path, folder: Path) -> dict[str, float]:
    """Build the index."""
    from searchparty.retrieval.bm25 import BM25Index

    started = time.perf_counter()
    index = BM25Index.build(corpus, folder)
    return {
        "passages": len(index),
        "seconds": time.perf_counter() - started,
        "size, MB": sum(index.manifest.files.values()) / 1e6,
    }


def search(folder: Path, queries: list[str], k: int) -> dict[str, float]:
    """Open the index and search, passages read and parsed."""
    started = time.perf_counter()
    from searchparty.retrieval.bm25 import BM25Index

    imported = time.perf_counter()
    index = BM25Index(folder)
    opened = time.perf_counter()
    index.search(queries[:1], k)
    answered = time.perf_counter()
    batches = [queries[start : start + BATCH] for start in range(0, len(queries), BATCH)]
    return {
        "import, ms": 1000 * (imported - started),
        "open, ms": 1000 * (opened - imported),
        "first query, ms": 1000 * (answered - opened),
        "one by one, queries/s": rate(lambda: [index.search([query], k) for query in queries], len(queries)),
        f"batches of {BATCH}, queries/s": rate(lambda: [index.search(batch, k) for batch in batches], len(queries)),
    }


def scoring(folder: Path, queries: list[str], k: int) -> dict[str, float]:
    """Scoring alone, from word numbers to rows, of this package and of bm25s over the same arrays."""
    import bm25s

    from searchparty.retrieval.analysis import EnglishAnalyzer
    from searchparty.retrieval.bm25_build import load_postings
    from searchparty.retrieval.manifest import load_manifest
    from searchparty.retrieval.maxscore import compiled_best_rows
    from searchparty.retrieval.scoring import best_rows
    from searchparty.retrieval.terms import Terms

    analyzer, terms = EnglishAnalyzer(), Terms(folder)
    postings = load_postings(folder, load_manifest(folder).passages)
    numbers = [[term for word in analyzer.words(query) if (term := terms.find(word)) is not None] for query in queries]
    numbers = [query for query in numbers if query]
    counts = [Counter(query) for query in numbers]
    k = min(k, postings.passages)

    reference = bm25s.BM25(method="lucene", backend="numpy")
    reference.scores = {
        "data": postings.weights, "indices": postings.rows, "indptr": postings.starts, "num_docs": postings.passages,
    }  # fmt: skip
    reference.nonoccurrence_array = None
    reference.vocab_dict = {"": len(terms)}
    reference.unique_token_ids_set = set(range(len(terms)))
    ours = rate(lambda: [best_rows(postings, query, k) for query in counts], len(numbers))
    compiled_best_rows(postings, counts[0], k)
    compiled = rate(lambda: [compiled_best_rows(postings, query, k) for query in counts], len(numbers))
    theirs = rate(lambda: reference.retrieve(numbers, k=k, show_progress=False), len(numbers))
    compiled_reference = bm25s.BM25(method="lucene", backend="numba")
    compiled_reference.__dict__.update({**reference.__dict__, "backend": "numba"})
    compiled_reference.retrieve(numbers[:1], k=k, show_progress=False, n_threads=0)
    theirs_compiled = rate(lambda: compiled_reference.retrieve(numbers, k=k, show_progress=False, n_threads=0), len(numbers))
    return {
        "searchparty numpy, queries/s": ours,
        "bm25s numpy, queries/s": theirs,
        "ratio, numpy": ours / theirs,
        "searchparty compiled, queries/s": compiled,
        "bm25s numba, queries/s": theirs_compiled,
        "ratio, compiled": compiled / theirs_compiled,
    }


def rate(run: Callable[[], object], queries: int) -> float:
    """Queries per second of the fastest pass."""
    seconds = []
    for _ in range(PASSES):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return queries / min(seconds)


def main() -> None:
    """Run all stages and print one table."""
    parser = argparse.ArgumentParser(description="Speed and memory of BM25.")
    parser.add_argument("corpus", nargs="?", type=Path, default=sample_corpus(), help="default: the sample in the package")
    parser.add_argument("--queries", type=Path, default=sample_questions(), help="JSON lines with a field 'question'")
    parser.add_argument("-k", type=int, default=3)
    options = parser.parse_args()
    queries = [str(record["question"]) for _, record in read_jsonl(options.queries)]

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "index"
        stages = {
            "build": in_own_process(build, options.corpus, folder),
            "search": in_own_process(search, folder, queries, options.k),
            "scoring alone": in_own_process(scoring, folder, queries, options.k),
        }
    print(f"BM25 over {options.corpus.name}, {len(queries)} queries, k = {options.k}")
    for stage, figures in stages.items():
        for measure, value in figures.items():
            print(f"  {stage:<14} {measure:<32} {value:>12,.1f}")


if __name__ == "__main__":
    main()
