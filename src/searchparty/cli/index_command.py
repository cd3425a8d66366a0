"""`searchparty index build` and `searchparty index info`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from searchparty.retrieval.building import Progress
    from searchparty.retrieval.manifest import Manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)

    build = actions.add_parser("build", help="build an index over a corpus", description="Build an index over a corpus.")
    build.add_argument("corpus", type=Path, metavar="CORPUS", help="file of passages; JSON lines, JSON or TSV, gzip or not")
    build.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder of the index")
    build.add_argument("--retriever", choices=["bm25"], default="bm25", help="kind of index (default: %(default)s)")
    build.add_argument(
        "--format",
        choices=["jsonl", "json", "dpr", "title-text", "kilt"],
        help="format of the corpus (default: found by content)",
    )
    build.add_argument("--k1", type=float, default=0.9, help="BM25: weight of repeated words (default: %(default)s)")
    build.add_argument("--b", type=float, default=0.4, help="BM25: mark-down of long passages (default: %(default)s)")
    build.add_argument("--overwrite", action="store_true", help="replace the index that is in DIR")

    info = actions.add_parser("info", help="describe an index", description="Describe an index.")
    info.add_argument("index", type=Path, metavar="DIR", help="folder of the index")
    info.add_argument("--json", action="store_true", help="print the manifest as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    return _build(args) if args.action == "build" else _info(args)


def _build(args: argparse.Namespace) -> int:
    from searchparty.retrieval.bm25 import BM25Index

    started = time.perf_counter()
    with _progress_bar() as progress:
        index = BM25Index.build(
            args.corpus, args.output, format=args.format, k1=args.k1, b=args.b, overwrite=args.overwrite, progress=progress
        )
    seconds = time.perf_counter() - started
    size = sum(index.manifest.files.values())
    print(f"{args.output}: {len(index):,} passages indexed in {seconds:.1f} s, {_megabytes(size)}")
    return 0


def _info(args: argparse.Namespace) -> int:
    from searchparty.retrieval.manifest import load_manifest

    manifest = load_manifest(args.index)
    print(manifest.model_dump_json(indent=2) if args.json else _description(args.index, manifest))
    return 0


def _description(folder: Path, manifest: Manifest) -> str:
    rows = {
        "index": str(folder),
        "retriever": manifest.retriever,
        "corpus": manifest.corpus,
        "passages": f"{manifest.passages:,}",
        **{name.replace("_", " "): f"{value:,}" for name, value in manifest.counts.items()},
        **{name.replace("_", " "): str(value) for name, value in manifest.settings.items()},
        "built with": ", ".join(f"{name} {version}" for name, version in manifest.built_with.items()),
        "passages sha256": manifest.passages_sha256,
        "ids sha256": manifest.ids_sha256,
        "size": _megabytes(sum(manifest.files.values())),
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows.items())


@contextmanager
def _progress_bar() -> Iterator[Progress]:
    """A bar on standard error if that is a terminal, and silence otherwise."""
    if not sys.stderr.isatty():
        yield lambda stage, done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("")
        yield lambda stage, done, total: bar.update(task, description=stage, completed=done, total=total)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
