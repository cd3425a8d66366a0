"""The options that every command shares which serves something over HTTP."""

from __future__ import annotations

import argparse
import os
import sys

from searchparty.cli.numbers import positive
from searchparty.errors import UserError

MEGABYTE = 1024 * 1024


def add_serving_options(parser: argparse.ArgumentParser, *, port: int, token_variable: str, body_mb: int) -> None:
    """Declare --host, --port, --require-token and --body-mb."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)")
    parser.add_argument("--port", type=int, default=port, help="port to listen on; 0 takes a free one (default: %(default)s)")
    parser.add_argument(
        "--require-token", action="store_true", help=f"answer only clients that send the token in {token_variable}"
    )
    parser.add_argument(
        "--body-mb",
        type=positive,
        default=body_mb,
        metavar="MB",
        help="longest request; a longer one is answered with 413 (default: %(default)s)",
    )


def required_token(options: argparse.Namespace, token_variable: str) -> str | None:
    """The token that clients must send; None if none was asked for. Raises UserError if it is asked for and not there."""
    token = os.environ.get(token_variable) if options.require_token else None
    if options.require_token and not token:
        raise UserError(f"--require-token: put the token into the environment variable {token_variable}")
    return token


def warn_if_open(host: str, token: str | None, may: str) -> None:
    """Say so if whoever reaches this machine may use the server; `may` is what they may do."""
    from searchparty.http_calls import LOOPBACK

    if host not in LOOPBACK and token is None:
        print(f"{host}: whoever reaches this machine may {may}; --require-token asks for a token", file=sys.stderr)
