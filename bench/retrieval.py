"""Speed and memory of BM25: building, opening, searching one by one and in batches, beside bm25s over the same arrays, and
beside rank_bm25, tantivy and SQLite FTS5 (`retrieval_rivals.py`) as far as they are installed.

    python bench/retrieval.py [CORPUS] [--queries QUESTIONS.jsonl] [-k 3] [--passages 1000000] [--only-ours]

Without arguments the sample in the package is used, which is too small for more than a first look. `--passages` repeats the
corpus, or cuts it, to so many passages with ids of their own: sizes and memory are then those of real text, the number of
different words is not. Each stage runs in a process of its own, so that peak memory is that stage's alone. Pages of mapped
files count in it, though the system can take them back, so memory of the process's own is given as well. Rates are the best of
three passes over the queries.
"""

from __future__ import annotations

import argparse
import itertools
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import orjson
from own_process import in_own_process
from retrieval_rivals import RIVALS

from searchparty.files import read_jsonl
from searchparty.questions.sample import sample_corpus, sample_questions

PASSES = 3
BATCH = 256


def repeated(corpus: Path, passages: int, target: Path) -> Path:
    """Write so many passages of the corpus, again and again from its beginning, each with an id of its own."""
    from searchparty.retrieval.corpus import read_corpus

    with target.open("wb") as stream:
        written = turn = 0
        while written < passages:
            for _, passage in itertools.islice(read_corpus(corpus, None), passages - written):
                record = {"id": f"{turn}-{passage.id}", "title": passage.title, "text": passage.text}
                stream.write(orjson.dumps(record) + b"\n")
                written += 1
            turn += 1
    return target


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
    index.prepare(wait=True)
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
    parser.add_argument("--passages", type=int, metavar="N", help="repeat or cut the corpus to N passages")
    parser.add_argument("--only-ours", action="store_true", help="neither bm25s nor the rivals")
    options = parser.parse_args()
    queries = [str(record["question"]) for _, record in read_jsonl(options.queries)]

    print(f"BM25 over {options.corpus.name}, {len(queries)} queries, k = {options.k}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder, corpus = Path(name) / "index", options.corpus
        if options.passages is not None:
            corpus = repeated(options.corpus, options.passages, Path(name) / "corpus.jsonl")
        report("build", in_own_process(build, corpus, folder))
        report("search", in_own_process(search, folder, queries, options.k))
        if options.only_ours:
            return
        report("scoring alone", in_own_process(scoring, folder, queries, options.k))
        for rival, stage in RIVALS.items():
            try:
                report(rival, in_own_process(stage, corpus, Path(name) / rival, queries, options.k))
            except (ImportError, RuntimeError, sqlite3.Error) as reason:
                print(f"  {rival:<14} {reason}", flush=True)


def report(stage: str, figures: dict[str, float]) -> None:
    """Print the figures of a stage."""
    for measure, value in figures.items():
        print(f"  {stage:<14} {measure:<32} {value:>12,.1f}", flush=True)


if __name__ == "__main__":
    main()
