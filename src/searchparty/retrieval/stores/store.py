"""What a collection in a search server says about itself, and what each kind of server must be able to do to hold one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from searchparty.errors import UserError
from searchparty.retrieval.manifest import identity_line
from searchparty.retrieval.types import Hit, Passage

FORMAT_VERSION = 1
MANIFEST_FIELD = "searchparty"
"""Name under which the manifest lies in the metadata of a collection."""


class StoreManifest(BaseModel):
    """Kept in the metadata of the collection. Without `complete` it was not filled to the end."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = FORMAT_VERSION
    """Version of the collection's layout."""
    retriever: str
    """Which kind of store reads it, such as `qdrant-bm25`."""
    settings: dict[str, float | str]
    """Everything besides the corpus that hits depend on."""
    corpus: str
    """Name of the corpus file, without its folder."""
    passages: int
    passages_sha256: str
    """SHA-256 over the passages, one JSON line each, in corpus order; that of an index folder over the same corpus."""
    complete: bool = False

    @property
    def identity(self) -> str:
        """Retriever, settings and corpus in one line."""
        return identity_line(self.retriever, self.settings, self.passages_sha256)


class Store(Protocol):
    """A collection in a search server. Every method raises ServiceFailure if the server cannot be asked."""

    retriever: str
    """What its manifest must name."""

    def settings(self, k1: float, b: float, mean_words: float) -> dict[str, float | str]:
        """The settings for a corpus whose passages have so many words on average."""

    def metadata(self) -> Mapping[str, Any] | None:
        """The metadata of the collection; None if there is no such collection."""

    def create(self, manifest: StoreManifest) -> None:
        """Make the empty collection."""

    def delete(self) -> None:
        """Remove the collection."""

    def add(self, manifest: StoreManifest, first_row: int, passages: Sequence[Passage]) -> None:
        """Put passages in; the first has this place in the corpus, from 0."""

    def finish(self, manifest: StoreManifest) -> None:
        """Make everything that was put in findable and keep this manifest."""

    def search(self, manifest: StoreManifest, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query, best first, ties by corpus order."""

    def close(self) -> None:
        """Close the connection."""


class StoreRetriever:
    """A `Retriever` over a filled collection. Safe to use from several threads at once."""

    def __init__(self, store: Store, name: str) -> None:
        """Open a collection.

        Args:
            store: holds it; closed with the retriever.
            name: names it in errors.

        Raises:
            UserError: there is none, it was not filled by this program or not to the end, or with other settings.
            ServiceFailure: the server cannot be asked.
        """
        manifest = read_manifest(store, name)
        if manifest is None:
            raise UserError(f"{name}: no such collection; make it with: searchparty store fill CORPUS {name}")
        if not manifest.complete:
            raise UserError(f"{name}: was not filled to the end; do it again with: searchparty store fill --overwrite")
        if manifest.retriever != store.retriever or manifest.settings != store.settings(*_tuning(manifest)):
            raise UserError(f"{name}: was filled with other settings than this program's; fill it again with --overwrite")
        self.manifest = manifest
        self._store = store

    @property
    def identity(self) -> str:
        """Settings and corpus in one line."""
        return self.manifest.identity

    def __len__(self) -> int:
        return self.manifest.passages

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """At most `k` hits per query, best first, ties by corpus order. Raises ServiceFailure."""
        if k < 1:
            raise ValueError(f"k must be at least 1, not {k}")
        return self._store.search(self.manifest, queries, k) if queries else []

    def close(self) -> None:
        """Close the connection."""
        self._store.close()


def read_record(store: Store, name: str) -> Mapping[str, Any] | None:
    """What this program wrote about a collection, in whatever state it is; None if there is no such collection.

    Raises:
        UserError: there is one, but it is not of this program.
    """
    metadata = store.metadata()
    if metadata is None:
        return None
    record = metadata.get(MANIFEST_FIELD)
    if not isinstance(record, Mapping):
        raise UserError(f"{name}: was not filled by this program; name another collection")
    return record


def read_manifest(store: Store, name: str) -> StoreManifest | None:
    """The manifest of a collection; None if there is no such collection.

    Raises:
        UserError: there is one, but it is not of this program, or of another version.
    """
    record = read_record(store, name)
    if record is None:
        return None
    if record.get("format") != FORMAT_VERSION:
        raise UserError(
            f"{name}: its layout is version {record.get('format')}, this program reads {FORMAT_VERSION};"
            " fill it again with --overwrite"
        )
    try:
        return StoreManifest.model_validate(dict(record))
    except ValidationError:
        raise UserError(f"{name}: its metadata are damaged; fill it again with --overwrite") from None


def _tuning(manifest: StoreManifest) -> tuple[float, float, float]:
    settings = manifest.settings
    try:
        return float(settings["k1"]), float(settings["b"]), float(settings.get("mean_words", 0.0))
    except (KeyError, ValueError):
        return 0.0, 0.0, 0.0
