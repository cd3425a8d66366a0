"""A world as a folder: questions by split, the corpus, and `world.json`, from which the world can be made again."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from searchparty.errors import UserError
from searchparty.files import atomic_output, read_json, write_json
from searchparty.questions import write_questions
from searchparty.questions.formats.native import to_line
from searchparty.retrieval.types import Passage
from searchparty.world.making import make_world
from searchparty.world.parameters import WorldParameters
from searchparty.world.types import World

SCHEMA_VERSION = 1
WORLD_FILE = "world.json"
CORPUS_FILE = "corpus.jsonl"


def questions_file(split: str) -> str:
    """Name of the file with the questions of a split: train, dev or test."""
    return f"questions-{split}.jsonl"


def write_world(world: World, folder: Path, *, overwrite: bool = False) -> None:
    """Write a world into `folder`, which appears complete or not at all.

    With `overwrite` the world that is there is replaced; a folder that holds something else never is.

    Raises:
        UserError: `folder` exists and may not be replaced, or cannot be written.
    """
    check_target(folder, overwrite)
    temporary, replaced = (folder.with_name(f".{folder.name}.{os.getpid()}.{end}") for end in ("new", "replaced"))
    try:
        temporary.mkdir(parents=True)
        for split, questions in world.questions.items():
            write_questions(temporary / questions_file(split), questions)
        with atomic_output(temporary / CORPUS_FILE) as stream:
            stream.writelines(map(_passage_line, world.passages))
        write_json(temporary / WORLD_FILE, _description(world))
        if folder.exists():
            folder.rename(replaced)
        temporary.rename(folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror or error}); choose another folder") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.rmtree(replaced, ignore_errors=True)


def check_target(folder: Path, overwrite: bool) -> None:
    """Raises UserError if a world may not be written there. An empty folder is as good as none."""
    if folder.is_dir() and not any(folder.iterdir()):
        return
    if folder.exists() and not overwrite:
        raise UserError(f"{folder}: already exists; choose another folder or add --overwrite")
    if folder.exists() and not (folder / WORLD_FILE).is_file():
        raise UserError(
            f"{folder}: is not a world ({WORLD_FILE} is missing), so --overwrite leaves it alone; choose another folder"
        )


def load_world(path: Path) -> World:
    """Make the world again that a folder, or a `world.json`, describes.

    Raises:
        UserError: if the file is missing or not in form, or if this version makes another world from the same parameters.
    """
    file = path / WORLD_FILE if path.is_dir() else path
    parameters, digest = read_json(file, _check)
    world = make_world(parameters)
    if world_digest(world) != digest:
        raise UserError(
            f"{file}: this version makes another world from these parameters; make it again: searchparty world make"
        )
    return world


def world_digest(world: World) -> str:
    """A name for the world's passages and questions: equal digests mean equal files."""
    digest = hashlib.sha256("".join(map(_passage_line, world.passages)).encode())
    for questions in world.questions.values():
        digest.update("\n".join(map(to_line, questions)).encode())
    return digest.hexdigest()


def counts(world: World) -> dict[str, Any]:
    """How much of everything there is."""
    everything = [question for questions in world.questions.values() for question in questions]
    return {
        "entities": _tally([str(entity.kind) for entity in world.entities]),
        "facts": len(world.facts),
        "passages": len(world.passages),
        "questions": {split: len(questions) for split, questions in world.questions.items()},
        "hops": _tally([str(question.hops) for question in everything]),
        "types": _tally([str(question.type) for question in everything]),
        "searches": _tally([str(question.extra["searches"]) for question in everything]),
    }


def _tally(words: Sequence[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _passage_line(passage: Passage) -> str:
    return json.dumps({"id": passage.id, "title": passage.title, "text": passage.text}) + "\n"


def _description(world: World) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "parameters": dataclasses.asdict(world.parameters),
        "counts": counts(world),
        "digest": world_digest(world),
    }


def _check(document: Any) -> tuple[WorldParameters, str]:
    if document["schema_version"] != SCHEMA_VERSION:
        raise ValueError(f"schema version {document['schema_version']}, this program reads {SCHEMA_VERSION}")
    values = document["parameters"]
    return WorldParameters(**{**values, "hops": tuple(values["hops"])}), str(document["digest"])
