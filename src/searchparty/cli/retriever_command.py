"""`searchparty retriever serve DIR`: an index behind HTTP, in Search-R1's dialect."""

from __future__ import annotations

import argparse


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


def run(args: argparse.Namespace) -> int:
    """Serve until a signal comes."""
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
