"""What an index folder says about itself, and the check that the folder still holds what it says. Knows no retriever."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from searchparty.errors import UserError
from searchparty.files import write_json

MANIFEST_FILE = "index.json"
FORMAT_VERSION = 1


class Manifest(BaseModel):
    """The file `index.json` of an index folder, written last: a folder without it is no index."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int
    """Version of the folder's layout."""
    retriever: str
    """Which retriever opens the folder, such as `bm25`."""
    settings: dict[str, float | str]
    """Everything besides the corpus that hits depend on."""
    corpus: str
    """Name of the corpus file, without its folder."""
    passages: int
    passages_sha256: str
    """SHA-256 over the stored passages, one JSON line each, in corpus order."""
    ids_sha256: str
    """SHA-256 over the passage ids, one a line, in corpus order."""
    counts: dict[str, int | float]
    """Sizes for a person to look at, such as the number of distinct words."""
    built_with: dict[str, str]
    """Versions of the packages that made the index."""
    files: dict[str, int]
    """Every other file of the folder and its size in bytes."""

    @property
    def identity(self) -> str:
        """Retriever, settings and corpus in one line; equal identities give equal hits.

        Where the digest of a model is known, its place does not count.
        """
        passed_over = {"model"} if "model_digest" in self.settings else set()
        settings = {name: value for name, value in self.settings.items() if name not in passed_over}
        return identity_line(self.retriever, settings, self.passages_sha256)


def identity_line(retriever: str, settings: Mapping[str, float | str], passages_sha256: str) -> str:
    """How a retriever, its settings and its corpus are named together."""
    listed = ",".join(f"{name}={value}" for name, value in sorted(settings.items()))
    return f"{retriever}({listed})@{passages_sha256[:16]}"


def save_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest into an index folder that is otherwise complete."""
    write_json(folder / MANIFEST_FILE, manifest.model_dump())


def file_sizes(folder: Path) -> dict[str, int]:
    """Name and size of each file in the folder."""
    return {path.name: path.stat().st_size for path in sorted(folder.iterdir()) if path.is_file()}


def load_manifest(folder: Path) -> Manifest:
    """Read the manifest and check that every file is there in full.

    Raises:
        UserError: no index there, one of another version, or one that is cut short.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such index folder; make it with: searchparty index build CORPUS -o {folder}")
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise UserError(f"{folder}: is not an index ({MANIFEST_FILE} is missing); make one with: searchparty index build")
    try:
        record: Any = json.loads(path.read_bytes())
        if not isinstance(record, dict) or not isinstance(record.get("format"), int):
            raise ValueError("no format version")
    except ValueError as error:
        raise _rebuild(folder, f"{MANIFEST_FILE} is damaged ({error})") from None
    if record["format"] != FORMAT_VERSION:
        raise _rebuild(folder, f"its layout is version {record['format']}, this program reads version {FORMAT_VERSION}")
    try:
        manifest = Manifest.model_validate(record)
    except ValidationError as error:
        fault = error.errors()[0]
        raise _rebuild(folder, f"{MANIFEST_FILE} is damaged ({'.'.join(map(str, fault['loc']))}: {fault['msg']})") from None
    found = file_sizes(folder)
    for name, size in manifest.files.items():
        if name not in found:
            raise _rebuild(folder, f"the file {name} is missing")
        if found[name] != size:
            raise _rebuild(folder, f"the file {name} has {found[name]} bytes where {size} were written")
    return manifest


def refuse_other_settings(folder: Path, manifest: Manifest, expected: Mapping[str, str]) -> None:
    """Raise UserError if the index was built with settings that the running program does not apply to queries."""
    for name, value in expected.items():
        if manifest.settings.get(name) != value:
            raise _rebuild(folder, f"it was built with {name} {manifest.settings.get(name)!r}, this program uses {value!r}")


def _rebuild(folder: Path, why: str) -> UserError:
    return UserError(f"{folder}: the index cannot be used: {why}; build it again with: searchparty index build --overwrite")
