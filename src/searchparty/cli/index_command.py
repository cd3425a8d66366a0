"""`searchparty index build`, `index info` and `index evaluate`."""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from searchparty.cli.numbers import positive
from searchparty.cli.progress_bar import progress_bar
from searchparty.errors import UserError

if TYPE_CHECKING:
    from searchparty.retrieval.bm25 import BM25Index
    from searchparty.retrieval.dense.index import DenseIndex
    from searchparty.retrieval.manifest import Manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)

    build = actions.add_parser("build", help="build an index over a corpus", description="Build an index over a corpus.")
    build.add_argument("corpus", type=Path, metavar="CORPUS", help="file of passages; JSON lines, JSON or TSV, gzip or not")
    build.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder of the index")
    build.add_argument(
        "--kind", "--retriever", choices=["bm25", "dense"], default="bm25", help="kind of index (default: %(default)s)"
    )
    build.add_argument(
        "--format",
        choices=["jsonl", "json", "dpr", "title-text", "kilt"],
        help="format of the corpus (default: found by content)",
    )
    build.add_argument("--k1", type=float, help="BM25: weight of repeated words (default: 0.9)")
    build.add_argument("--b", type=float, help="BM25: mark-down of long passages (default: 0.4)")
    build.add_argument("--model", help="dense: the encoder, a Hugging Face name or a folder")
    build.add_argument(
        "--profile",
        metavar="NAME",
        help="dense: how texts are put to the encoder: e5, bge, contriever, minilm, or sentence-transformers, which trusts the"
        " model's own files",
    )
    build.add_argument("--storage", choices=["float32", "float16", "int8"], help="dense: stored numbers (default: float16)")
    build.add_argument("--query-prefix", metavar="TEXT", help="dense: in place of the profile's")
    build.add_argument("--passage-prefix", metavar="TEXT", help="dense: in place of the profile's")
    build.add_argument(
        "--vectors", type=Path, metavar="FILE", help="dense: a FAISS flat index with the vectors of CORPUS in its order"
    )
    build.add_argument(
        "--search",
        choices=["exact", "flat", "ivf", "hnsw", "sq8"],
        help="dense: compare every vector, or build a FAISS index (default: exact)",
    )
    build.add_argument("--recall", type=float, help="dense: recall@10 that a FAISS index should reach (default: 0.95)")
    build.add_argument("--device", help="dense: where passages are encoded, such as cuda (default: a card if there is one)")
    build.add_argument("--overwrite", action="store_true", help="replace the index that is in DIR")

    info = actions.add_parser("info", help="describe an index", description="Describe an index.")
    info.add_argument("index", type=Path, metavar="DIR", help="folder of the index")
    info.add_argument("--json", action="store_true", help="print the manifest as JSON")

    evaluate = actions.add_parser(
        "evaluate", help="how much of what questions need a retriever finds", description="Score a retriever with questions."
    )
    evaluate.add_argument(
        "index", metavar="INDEX", help="folder of an index, address of a retrieval server, or FILE.yaml of a retriever"
    )
    evaluate.add_argument("questions", type=Path, metavar="QUESTIONS", help="file of questions with golden answers")
    evaluate.add_argument(
        "-k",
        type=_cutoffs,
        default=[1, 3, 10, 20],
        metavar="K,K,...",
        help="how many of the best hits count (default: 1,3,10,20)",
    )
    evaluate.add_argument("--limit", type=positive, metavar="N", help="the first N questions only")
    evaluate.add_argument("--json", action="store_true", help="print the numbers as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the chosen action."""
    return {"build": _build, "info": _info, "evaluate": _evaluate}[args.action](args)


def _cutoffs(text: str) -> list[int]:
    return sorted({positive(part) for part in text.split(",")})


_ENCODER = ("model", "profile", "query_prefix", "passage_prefix", "device")
_OPTIONS = {"bm25": ("k1", "b"), "dense": (*_ENCODER, "storage", "vectors", "search", "recall")}
"""Options of `index build` that only one kind of index has."""


def _build(args: argparse.Namespace) -> int:
    given = {
        kind: {name: value for name in names if (value := getattr(args, name)) is not None} for kind, names in _OPTIONS.items()
    }
    for kind, options in given.items():
        if options and kind != args.kind:
            raise UserError(
                f"--{next(iter(options)).replace('_', '-')} means nothing for an index of the kind {args.kind}; remove it"
            )
    started = time.perf_counter()
    with progress_bar() as progress:
        common = {"format": args.format, "overwrite": args.overwrite, "progress": progress}
        index = (_build_dense if args.kind == "dense" else _build_bm25)(args.corpus, args.output, given[args.kind], common)
    seconds = time.perf_counter() - started
    size = sum(index.manifest.files.values())
    print(f"{args.output}: {len(index):,} passages indexed in {seconds:.1f} s, {_megabytes(size)}")
    return 0


def _build_bm25(corpus: Path, folder: Path, options: dict[str, Any], common: dict[str, Any]) -> BM25Index:
    from searchparty.retrieval.bm25 import BM25Index

    return BM25Index.build(corpus, folder, **options, **common)


def _build_dense(corpus: Path, folder: Path, options: dict[str, Any], common: dict[str, Any]) -> DenseIndex:
    from searchparty.retrieval.dense.profiles import PROFILES, find_profile

    if "model" not in options:
        raise UserError("--model: a dense index needs an encoder; give a Hugging Face name or a folder")
    if "profile" not in options:
        raise UserError(
            f"--profile: say how texts are put to {options['model']}, since a wrong prefix or pooling raises no error; one of"
            f" {', '.join(PROFILES)}"
        )
    profile = find_profile(options["profile"])
    prefixes = {name: options[name] for name in ("query_prefix", "passage_prefix") if name in options}
    from searchparty.retrieval.dense.build import DenseOptions
    from searchparty.retrieval.dense.index import DenseIndex
    from searchparty.retrieval.dense.sentence_encoder import SentenceEncoder

    wanted = DenseOptions(**{name: value for name, value in options.items() if name not in _ENCODER})
    encoder = SentenceEncoder(options["model"], replace(profile, **prefixes), device=options.get("device"))
    return DenseIndex.build(corpus, folder, encoder, options=wanted, **common)


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


def _evaluate(args: argparse.Namespace) -> int:
    from searchparty.evaluation.retrieval_scores import estimate_scores, score_retriever
    from searchparty.evaluation.retrievers import open_choice
    from searchparty.questions.reading import load_questions

    questions = load_questions(args.questions, limit=args.limit).questions
    retriever = open_choice(args.index)
    with progress_bar() as progress:
        scores = score_retriever(retriever, questions, args.k, progress)
    estimates = estimate_scores(scores)
    if args.json:
        numbers = {measure: {name: asdict(one) for name, one in found.items()} for measure, found in estimates.items()}
        print(json.dumps({"retriever": retriever.identity, "questions": str(args.questions), "measures": numbers}, indent=2))
        return 0
    datasets = {name: None for column in scores.values() for name in column}
    columns = [*datasets, *(["macro"] if len(datasets) > 1 else [])]
    print(f"{retriever.identity}\n{len(questions):,} questions; in %, [95 % interval over questions], number of questions\n")
    print("\n".join(f"| {' | '.join(cells)} |" for cells in [["measure", *columns], ["---"] * (len(columns) + 1)]))
    for measure, found in estimates.items():
        counts = {name: f" ({len(values):,})" for name, values in scores[measure].items()}
        cells = [found[name].text(100, 1) + counts.get(name, "") if name in found else "–" for name in columns]
        print(f"| {measure} | {' | '.join(cells)} |")
    return 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
