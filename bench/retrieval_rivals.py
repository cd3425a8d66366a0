"""The same passages and questions through rank_bm25, tantivy and SQLite's FTS5, for `retrieval.py`.

Each searches as we do: English stems, no stop words, any of the words. tantivy and FTS5 rank with k1 = 1.2 and b = 0.75, which
they fix. A rival that is slow is asked fewer queries: as many as it answers within some seconds.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from searchparty.retrieval.analysis import STOP_WORDS, EnglishAnalyzer
from searchparty.retrieval.corpus import read_corpus
from searchparty.retrieval.types import Passage

SECONDS = 8.0
"""For which each rival is asked, at most."""
MOST_FOR_RANK_BM25 = 200_000
"""Passages that rank_bm25 is tried with: it holds a dictionary for each of them."""


def rank_bm25(corpus: Path, folder: Path, queries: list[str], k: int) -> dict[str, float]:
    """rank_bm25's BM25Okapi, over the words of our analyser."""
    import rank_bm25 as library  # type: ignore[import-not-found]

    analyzer = EnglishAnalyzer()
    started = time.perf_counter()
    words = [analyzer.words(passage.contents) for passage in _passages(corpus)]
    if len(words) > MOST_FOR_RANK_BM25:
        raise RuntimeError(f"not tried with more than {MOST_FOR_RANK_BM25:,} passages")
    index = library.BM25Okapi(words, k1=0.9, b=0.4)
    built = time.perf_counter() - started
    rows = range(len(words))
    return {"build, s": built, **_rate(lambda query: index.get_top_n(analyzer.words(query), rows, n=k), queries)}


def tantivy(corpus: Path, folder: Path, queries: list[str], k: int) -> dict[str, float]:
    """tantivy with its English stemmer, two threads to build; the passages are stored and read as well."""
    import tantivy as library  # type: ignore[import-not-found]

    folder.mkdir()
    schema = library.SchemaBuilder()
    schema.add_text_field("contents", stored=True, tokenizer_name="en_stem", index_option="freq")
    index = library.Index(schema.build(), path=str(folder))
    started = time.perf_counter()
    writer = index.writer(heap_size=200_000_000, num_threads=2)
    for passage in _passages(corpus):
        writer.add_document(library.Document(contents=passage.contents))
    writer.commit()
    writer.wait_merging_threads()
    built = time.perf_counter() - started
    index.reload()
    searcher = index.searcher()

    def search(query: str) -> None:
        words, _ = index.parse_query_lenient(" ".join(_plain_words(query)), ["contents"])
        for _, address in searcher.search(words, k, count=False).hits:
            searcher.doc(address)

    return {"build, s": built, "size, MB": _size(folder), **_rate(search, queries)}


def sqlite_fts5(corpus: Path, folder: Path, queries: list[str], k: int) -> dict[str, float]:
    """SQLite's FTS5 with its Porter stemmer, in one file that holds the passages as well."""
    folder.mkdir()
    database = sqlite3.connect(folder / "index.sqlite")
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("CREATE VIRTUAL TABLE passages USING fts5(contents, tokenize = 'porter unicode61', detail = 'full')")
    started = time.perf_counter()
    database.executemany("INSERT INTO passages VALUES (?)", ((passage.contents,) for passage in _passages(corpus)))
    database.commit()
    built = time.perf_counter() - started
    statement = "SELECT contents, bm25(passages) FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?"

    def search(query: str) -> None:
        database.execute(statement, (" OR ".join(f'"{word}"' for word in _plain_words(query)), k)).fetchall()

    return {"build, s": built, "size, MB": _size(folder), **_rate(search, queries)}


RIVALS = {"rank_bm25": rank_bm25, "tantivy": tantivy, "SQLite FTS5": sqlite_fts5}


def _passages(corpus: Path) -> Iterator[Passage]:
    return (passage for _, passage in read_corpus(corpus, None))


def _plain_words(query: str) -> list[str]:
    """Words without any sign that a query language knows, and without stop words."""
    letters = "".join(letter if letter.isalnum() else " " for letter in query.lower())
    return [word for word in letters.split() if word not in STOP_WORDS] or ["nothing"]


def _rate(search: Callable[[str], object], queries: list[str]) -> dict[str, float]:
    started = time.perf_counter()
    done = 0
    for query in queries:
        search(query)
        done += 1
        if time.perf_counter() - started > SECONDS:
            break
    return {"queries asked": done, "one by one, queries/s": done / (time.perf_counter() - started)}


def _size(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
