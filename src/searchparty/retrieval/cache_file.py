"""The file behind a cache: what each retriever answered, in one SQLite database that can be copied and read anywhere.

Passages are kept once, however many answers name them. Every write is one transaction: after a kill the file holds only whole
answers. Safe to use from several threads and several processes at once. Knows nothing of recording or replaying.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from searchparty.errors import UserError
from searchparty.retrieval.types import Hit, Passage

_APPLICATION = 0x53504361
"""Marks the database as one of these, for `file` and for us."""
_VERSION = 1
_SCHEMA = """
CREATE TABLE retrievers (number INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE);
CREATE TABLE passages (number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, id TEXT NOT NULL, title TEXT NOT NULL,
    text TEXT NOT NULL);
CREATE TABLE answers (retriever INTEGER NOT NULL, query TEXT NOT NULL, k INTEGER NOT NULL, hits TEXT NOT NULL,
    PRIMARY KEY (retriever, query, k)) WITHOUT ROWID;
"""
_PATIENCE = 60.0
"""Seconds to wait for another process that is writing."""

Answers = dict[str, list[Hit]]


@dataclass(frozen=True)
class CacheContents:
    """How many answers there are of each retriever, by its identity, and how many different passages they name."""

    answers: Mapping[str, int]
    passages: int


class CacheFile:
    """Answers by retriever identity, query and k. A query is compared letter by letter; nothing is normalised."""

    def __init__(self, path: Path, *, create: bool) -> None:
        """Open a cache.

        Args:
            path: the file.
            create: make it if there is none.

        Raises:
            UserError: there is none, it is no cache, it is of another version, or it cannot be opened.
        """
        self.path = path
        self._lock = threading.Lock()
        if not create and not path.is_file():
            raise UserError(f"{path}: no such cache; record one with mode: record-missing")
        with self._faults():
            path.parent.mkdir(parents=True, exist_ok=True)
            uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
            self._database = sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            self._check(create)
        except BaseException:
            self._database.close()
            raise

    def contents(self) -> CacheContents:
        """What the file holds."""
        counted = "SELECT identity, COUNT(query) FROM retrievers LEFT JOIN answers ON retriever = number GROUP BY number"
        with self._faults():
            passages = self._database.execute("SELECT COUNT(*) FROM passages").fetchone()[0]
            return CacheContents(dict(self._database.execute(counted).fetchall()), passages)

    def find(self, identity: str, queries: Sequence[str], k: int) -> Answers:
        """The recorded answers; a query without one is left out."""
        with self._faults():
            return {query: hits for query in dict.fromkeys(queries) if (hits := self._hits(identity, query, k)) is not None}

    def keep(self, identity: str, k: int, answers: Answers, *, replace: bool) -> None:
        """Record answers in one transaction.

        Args:
            identity: of the retriever that gave them.
            k: hits that were asked for.
            answers: hits by query.
            replace: take the place of earlier answers; else the earlier ones stay.
        """
        with self._transaction():
            execute = self._database.execute
            execute("INSERT OR IGNORE INTO retrievers (identity) VALUES (?)", (identity,))
            retriever = execute("SELECT number FROM retrievers WHERE identity = ?", (identity,)).fetchone()[0]
            for query, hits in answers.items():
                found = json.dumps([[self._passage_number(hit.passage), hit.score] for hit in hits])
                execute(
                    f"INSERT OR {'REPLACE' if replace else 'IGNORE'} INTO answers VALUES (?, ?, ?, ?)",
                    (retriever, query, k, found),
                )

    def close(self) -> None:
        """Close the file. May be called twice."""
        self._database.close()

    def _hits(self, identity: str, query: str, k: int) -> list[Hit] | None:
        row = self._database.execute(
            "SELECT hits FROM answers JOIN retrievers ON retriever = number WHERE identity = ? AND query = ? AND k = ?",
            (identity, query, k),
        ).fetchone()
        if row is None:
            return None
        return [Hit(self._passage(number), rank, score) for rank, (number, score) in enumerate(json.loads(row[0]), start=1)]

    def _passage(self, number: int) -> Passage:
        return Passage(*self._database.execute("SELECT id, title, text FROM passages WHERE number = ?", (number,)).fetchone())

    def _passage_number(self, passage: Passage) -> int:
        fields = (passage.id, passage.title, passage.text)
        digest = hashlib.sha256(json.dumps(fields).encode()).digest()[:16]
        self._database.execute(
            "INSERT OR IGNORE INTO passages (digest, id, title, text) VALUES (?, ?, ?, ?)", (digest, *fields)
        )
        return int(self._database.execute("SELECT number FROM passages WHERE digest = ?", (digest,)).fetchone()[0])

    def _check(self, create: bool) -> None:
        """Make the tables in a new file, and refuse one that is not ours."""
        with self._transaction() if create else self._faults():
            application = self._database.execute("PRAGMA application_id").fetchone()[0]
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            empty = self._database.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0] == 0
            if create and empty and application == 0:
                for statement in _SCHEMA.split(";"):
                    self._database.execute(statement)
                self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
                self._database.execute(f"PRAGMA user_version = {_VERSION}")
            elif application != _APPLICATION:
                raise UserError(f"{self.path}: is not a cache of answers; name another file")
            elif version != _VERSION:
                raise UserError(f"{self.path}: is a cache of version {version}, this program reads {_VERSION}; record it again")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._faults():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            finally:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """One thread at a time, and each fault of the file as one line."""
        with self._lock:
            try:
                yield
            except (sqlite3.Error, OSError) as error:
                raise UserError(
                    f"{self.path}: the cache cannot be used ({error}); check that its folder may be written to and has room,"
                    " or name another file"
                ) from error
