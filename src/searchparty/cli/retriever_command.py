"""`searchparty retriever serve INDEX`: any retriever behind HTTP. `searchparty retriever cache FILE`: what a cache holds."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from searchparty.cli.numbers import positive, whole
from searchparty.cli.serving_options import MEGABYTE, add_serving_options, required_token, warn_if_open
from searchparty.errors import UserError
from searchparty.http_calls import TOKEN_VARIABLE

if TYPE_CHECKING:
    import socket


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-command."""
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    serve = actions.add_parser(
        "serve",
        help="serve a retriever over HTTP",
        description="Serve a retriever over HTTP: POST /retrieve in Search-R1's dialect, POST /search with passages in full and"
        " the dialects of other projects, GET /health, GET /metrics for Prometheus.",
    )
    serve.add_argument(
        "index",
        metavar="INDEX",
        help="folder of an index, FILE.yaml of a retriever (fusion, re-ranking) as a recipe names it, or address of a server",
    )
    serve.add_argument(
        "--device",
        metavar="NAME",
        help="for a dense index: cards such as cuda or cuda:0,cuda:1, on which search is exact (default: the CPU)",
    )
    add_serving_options(serve, port=8000, token_variable=TOKEN_VARIABLE, body_mb=16)
    serve.add_argument("--topk", type=int, default=3, help="hits per query where a request names none (default: %(default)s)")
    serve.add_argument("--workers", type=positive, default=1, metavar="N", help="processes (default: %(default)s)")
    serve.add_argument(
        "--waiting",
        type=positive,
        default=1024,
        metavar="N",
        help="requests under way at once in each process; more are answered with 503 (default: %(default)s)",
    )
    serve.add_argument(
        "--memory-mb",
        type=whole,
        default=64,
        metavar="MB",
        help="answers that each process remembers; 0 for none (default: %(default)s)",
    )
    serve.add_argument("--inherit", help=argparse.SUPPRESS)

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
    from searchparty.evaluation.retrievers import passages_of, plan_with_device
    from searchparty.http_server.listening import address_of, allow_many_connections, bind, bind_each

    if args.topk < 1:
        raise UserError(f"--topk {args.topk}: at least 1 is needed")
    token = required_token(args, TOKEN_VARIABLE)
    allow_many_connections()
    if args.inherit is not None:
        return _serve_here(args, token, None)
    warn_if_open(args.host, token, "search")
    if args.workers == 1:
        return _serve_here(args, token, bind(args.host, args.port))
    plan = plan_with_device(args.index, args.device)
    passages = passages_of(plan)
    listeners = bind_each(args.host, args.port, args.workers)
    return _supervise(args, listeners, lambda: _announce(args.index, passages, address_of(listeners[0])))


def _serve_here(args: argparse.Namespace, token: str | None, listener: socket.socket | None) -> int:
    """Serve in this process: alone on a listener, or as the worker of a supervisor."""
    from searchparty.evaluation.retrievers import open_choice, passages_of, plan_with_device
    from searchparty.http_server.listening import Server
    from searchparty.retrieval.metrics import Metrics
    from searchparty.retrieval.server import Limits, RetrievalServer
    from searchparty.retrieval.workers import Inheritance
    from searchparty.retrieval.wrapping import prepare_for_many

    plan = plan_with_device(args.index, args.device)
    passages = passages_of(plan)
    retriever = open_choice(plan)
    prepare_for_many(retriever)
    # Requests leave no cycles of references behind, and looking for some among all that is loaded stops every answer meanwhile.
    gc.set_threshold(20_000, 50, 100)
    limits = Limits(args.body_mb * MEGABYTE, args.waiting, args.memory_mb * MEGABYTE)
    if listener is not None:
        application = RetrievalServer(retriever, passages, args.topk, limits=limits, token=token)
        Server(application, listener, lambda address: _announce(args.index, passages, address)).run_on_socket()
        return 0
    inherited = Inheritance.from_argument(args.inherit)
    metrics = Metrics(inherited.shared_memory(), inherited.row)
    application = RetrievalServer(retriever, passages, args.topk, limits=limits, token=token, metrics=metrics)
    server = Server(application, inherited.socket(), lambda address: inherited.say_ready())
    inherited.watch(lambda: setattr(server, "should_exit", True))
    server.run_on_socket()
    return 0


def _supervise(args: argparse.Namespace, listeners: list[socket.socket], ready: Callable[[], None]) -> int:
    """Serve in several processes, each of which runs this command again with what it inherits."""
    from searchparty.retrieval.metrics import shared_bytes
    from searchparty.retrieval.workers import Inheritance, Supervisor

    options = {"--topk": args.topk, "--waiting": args.waiting, "--body-mb": args.body_mb, "--memory-mb": args.memory_mb}

    def command(inheritance: Inheritance) -> list[str]:
        words = [sys.executable, "-m", "searchparty", "retriever", "serve", args.index, "--inherit", inheritance.argument]
        words += [str(word) for option in options.items() for word in option]
        words += ["--device", args.device] if args.device is not None else []
        return [*words, "--require-token"] if args.require_token else words

    return Supervisor(command, listeners, shared_bytes(len(listeners)), ready).run()


def _announce(choice: str, passages: int | None, address: str) -> None:
    served = choice if passages is None else f"{passages:,} passages"
    print(f"serving {served} at {address}/retrieve (stop with Ctrl-C)", flush=True)
