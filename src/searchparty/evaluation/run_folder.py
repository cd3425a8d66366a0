"""What every run directory has in common: one process at a time, a resolved recipe, and files that say whose they are.

Knows files; what a run is, and what of it may change, is said by those who have one (`run_directory`, `training`).
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from searchparty import __version__
from searchparty.errors import UserError

PACKAGES = ("numpy", "PyStemmer", "torch", "transformers", "tokenizers", "safetensors", "httpx", "vllm", "peft")
"""Packages that numbers depend on."""


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """Keep other processes out of a run directory, which is made if need be. Raises UserError if one is at work there.

    Yields the lock's descriptor: while a process that inherited it lives, the directory stays locked.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        stream = (path / ".lock").open("a")
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); give another directory") from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(f"{path}: another process is writing this run; wait for it or stop it") from None
        yield stream.fileno()


def check_flags(path: Path, *, is_run: bool, resume: bool, overwrite: bool) -> None:
    """Refuse a run that would be lost to a repeated command, and one that is to be continued and is not there.

    Raises:
        UserError: a run is there and neither flag is given; there is nothing to resume; or `path` is a file.
    """
    if resume and not is_run:
        raise UserError(f"{path}: nothing to resume here; leave out --resume to begin a run")
    if path.exists() and not path.is_dir():
        raise UserError(f"{path}: is a file; give a directory for the run")
    if is_run and not (resume or overwrite):
        raise UserError(f"{path}: already exists; add --resume to continue it or --overwrite to begin again")


def foreign_names(path: Path, own: Iterable[str]) -> list[str]:
    """Names of what lies in a directory and is neither a run's own nor left by an interrupted writer."""
    names = [child.name for child in path.iterdir()] if path.is_dir() else []
    return sorted(name for name in names if name not in {*own, ".lock"} and not name.endswith(".tmp"))


def remove_names(path: Path, names: Iterable[str]) -> None:
    """Remove files and folders of these names, as far as they are there."""
    for name in names:
        child = path / name
        if child.is_dir():
            shutil.rmtree(child)
        else:
            child.unlink(missing_ok=True)


def read_document(recipe_file: Path) -> dict[str, Any]:
    """The document of a resolved recipe. Raises UserError if it cannot be read or is none."""
    try:
        document = yaml.safe_load(recipe_file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{recipe_file}: cannot be read ({' '.join(str(error).split())}); was it edited by hand?") from None
    if not isinstance(document, dict):
        raise UserError(f"{recipe_file}: is no recipe; was it edited by hand?")
    return document


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one, keys joined by points. An empty mapping has no entry."""
    if not isinstance(value, dict):
        return {prefix: value}
    return {
        key: leaf
        for name, inner in value.items()
        for key, leaf in flat(inner, f"{prefix}.{name}" if prefix else str(name)).items()
    }


def recipe_faults(recipe_file: Path, resolved: str, may_change: Callable[[str], bool]) -> list[str]:
    """How the recipe of a run that is to be continued differs from what it was begun with, one line a key.

    Args:
        recipe_file: what it was begun with.
        resolved: what is given now, as YAML.
        may_change: whether a key, joined by points, may have another value.
    """
    before, now = flat(read_document(recipe_file)), flat(yaml.safe_load(resolved))
    return [
        f"{recipe_file.parent}: {key} was {before.get(key)!r}, is now {now.get(key)!r}; resume with what it was begun with"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key) and not may_change(key)
    ]


def describe_machine() -> dict[str, Any]:
    """Versions and machine: what every number depends on."""
    return {
        "searchparty": __version__,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": _package_versions(),
    }


def _package_versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
