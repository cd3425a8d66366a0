"""`searchparty search DIR "query"`: the hits of one query, for a person or as JSON."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from searchparty.cli.numbers import positive
from searchparty.retrieval.dialects import DIALECTS

if TYPE_CHECKING:
    from searchparty.retrieval.types import Hit

_EXCERPT_LENGTH = 300


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "index", metavar="DIR", help="folder of an index, address of a retrieval server (http://…), or FILE.yaml of a retriever"
    )
    parser.add_argument("query", help="what to search for")
    parser.add_argument(
        "--dialect", choices=list(DIALECTS), default="search-r1", help="how a server is asked (default: %(default)s)"
    )
    parser.add_argument("-k", type=positive, default=3, help="number of hits (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object: query, retriever, hits with whole texts")


def run(args: argparse.Namespace) -> int:
    """Search and print."""
    from searchparty.evaluation.retrievers import open_choice

    retriever = open_choice(args.index, dialect=args.dialect)
    [hits] = retriever.search([args.query], args.k)
    if args.json:
        found = [
            {"rank": hit.rank, "score": hit.score, "id": hit.passage.id, "title": hit.passage.title, "text": hit.passage.text}
            for hit in hits
        ]
        print(json.dumps({"query": args.query, "retriever": retriever.identity, "hits": found}, indent=2))
    elif hits:
        print("\n\n".join(map(_printed, hits)))
    else:
        print("no hits: nothing in the corpus answers to these words")
    return 0


def _printed(hit: Hit) -> str:
    """One hit in two lines. Control characters of foreign text are shown by code, so that they cannot steer the terminal."""
    from searchparty.episodes.printable import printable

    text = " ".join(hit.passage.text.split())
    excerpt = text if len(text) <= _EXCERPT_LENGTH else text[:_EXCERPT_LENGTH].rsplit(" ", 1)[0] + " …"
    head = f"{hit.rank}. {hit.score:.3f}  [{hit.passage.id}]  {hit.passage.title}"
    return f"{printable(head)}\n   {printable(excerpt)}"
