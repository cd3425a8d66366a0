"""`searchparty store fill CORPUS ADDRESS` makes a collection in a search server; `store info ADDRESS` describes one."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from searchparty.cli.progress_bar import progress_bar

_ADDRESS = "qdrant+http://host:6333/NAME, opensearch+http://host:9200/NAME or elasticsearch+http://host:9200/NAME"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    fill = actions.add_parser("fill", help="fill a collection from a corpus", description="Fill a collection from a corpus.")
    fill.add_argument("corpus", type=Path, metavar="CORPUS", help="file of passages; JSON lines, JSON or TSV, gzip or not")
    fill.add_argument("address", metavar="ADDRESS", help=_ADDRESS)
    fill.add_argument("--format", help="format of the corpus (default: found by content)")
    fill.add_argument("--k1", type=float, default=0.9, help="BM25: weight of repeated words (default: %(default)s)")
    fill.add_argument("--b", type=float, default=0.4, help="BM25: mark-down of long passages (default: %(default)s)")
    fill.add_argument("--overwrite", action="store_true", help="replace a collection that was made by this command")
    info = actions.add_parser("info", help="describe a collection", description="Describe a collection.")
    info.add_argument("address", metavar="ADDRESS", help=_ADDRESS)


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    return _fill(args) if args.action == "fill" else _info(args.address)


def _fill(args: argparse.Namespace) -> int:
    from searchparty.http_calls import TOKEN_VARIABLE
    from searchparty.retrieval.stores.filling import fill_store
    from searchparty.retrieval.stores.opening import open_store

    started = time.perf_counter()
    store = open_store(args.address, token=os.environ.get(TOKEN_VARIABLE))
    try:
        with progress_bar() as progress:
            settings = {"format": args.format, "k1": args.k1, "b": args.b, "overwrite": args.overwrite}
            manifest = fill_store(args.corpus, store, args.address, **settings, progress=progress)
    finally:
        store.close()
    print(f"{args.address}: {manifest.passages:,} passages in {time.perf_counter() - started:.1f} s")
    return 0


def _info(address: str) -> int:
    from searchparty.http_calls import TOKEN_VARIABLE
    from searchparty.retrieval.stores.opening import open_store_retriever

    retriever = open_store_retriever(address, token=os.environ.get(TOKEN_VARIABLE))
    print(json.dumps({"identity": retriever.identity, **retriever.manifest.model_dump()}, indent=2))
    retriever.close()
    return 0
