"""`searchparty retriever serve DIR`: an index behind HTTP. `searchparty retriever cache FILE`: what a cache holds."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-command."""
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    serve = actions.add_parser(
        "serve",
        help="serve an index over HTTP",
        description="Serve an index over HTTP: POST /retrieve in Search-R1's dialect, GET /health.",
    )
    serve.add_argument("index", metavar="DIR", help="folder of the index")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    serve.add_argument("--port", type=int, default=8000, help="port to listen on; 0 takes a free one (default: %(default)s)")
    serve.add_argument("--topk", type=int, default=3, help="hits per query where a request names none (default: %(default)s)")

    cache = actions.add_parser(
        "cache", help="describe a file of recorded answers", description="Say whose answers a cache holds, and how many."
    )
    cache.add_argument("cache", type=Path, metavar="FILE", help="the file named as retriever.cache in a recipe")


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    return _serve(args) if args.action == "serve" else _describe_cache(args.cache)


def _describe_cache(path: Path) -> int:
    from searchparty.retrieval.cache_file import CacheFile

    cache = CacheFile(path, create=False)
    contents = cache.contents()
    cache.close()
    for identity, answers in contents.answers.items():
        print(f"{answers:>10,} answers of {identity}")
    print(f"{contents.passages:>10,} different passages")
    return 0


def _serve(args: argparse.Namespace) -> int:
    from searchparty.errors import UserError
    from searchparty.retrieval.opening import open_index
    from searchparty.retrieval.server import RetrievalServer
    from searchparty.retrieval.serving import Server, bind

    if args.topk < 1:
        raise UserError(f"--topk {args.topk}: at least 1 is needed")
    index = open_index(args.index)
    application = RetrievalServer(index, len(index), args.topk)

    def ready(address: str) -> None:
        print(f"serving {len(index):,} passages at {address}/retrieve (stop with Ctrl-C)", flush=True)

    Server(application, bind(args.host, args.port), ready).run_on_socket()
    return 0
