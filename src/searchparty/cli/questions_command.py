"""`searchparty questions`: convert files of questions to our format, look at them, find duplicates, copy out the sample."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from searchparty.cli.numbers import positive
from searchparty.errors import UserError

if TYPE_CHECKING:
    from searchparty.questions.overlap import Overlap
    from searchparty.questions.reading import Loaded
    from searchparty.questions.types import Question

SPLITS = ("train", "dev", "test")
SHOWN_GROUPS = 10
"""Shared texts that `overlap` prints; `--json` has them all."""
SHOWN_ANSWERS = 5
"""Golden answers that `show` prints of a question; `--json` has them all."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)

    convert = actions.add_parser("convert", help="turn a file of any known format into our JSON lines")
    convert.add_argument("input", type=Path, metavar="IN", help="the file, plain or gzip-compressed")
    convert.add_argument("-o", "--output", type=Path, metavar="OUT.jsonl", required=True, help="the file to write")
    _add_reading_options(convert)
    convert.add_argument("--split", choices=SPLITS, help="the split of questions that do not say theirs")
    convert.add_argument(
        "--without", type=Path, metavar="FILE", help="leave out what this file asks too, by text or official id"
    )
    convert.add_argument("--limit", type=positive, metavar="N", help="take only the first N questions")

    show = actions.add_parser("show", help="print questions")
    show.add_argument("file", type=Path, metavar="FILE")
    _add_reading_options(show)
    show.add_argument("--limit", type=positive, default=10, metavar="N", help="how many to print (10)")
    show.add_argument("--id", help="print only the question with this id or key (dataset/id)")
    show.add_argument("--json", action="store_true", help="print JSON lines")

    overlap = actions.add_parser("overlap", help="find questions that two files share, or that one file repeats")
    overlap.add_argument("first", type=Path, metavar="A")
    overlap.add_argument("second", type=Path, metavar="B", nargs="?")
    overlap.add_argument("--json", action="store_true", help="print everything as one JSON object")

    sample = actions.add_parser("sample", help="copy the bundled questions and passages into a folder")
    sample.add_argument("-o", "--output", type=Path, metavar="DIR", required=True)


def run(args: argparse.Namespace) -> int:
    """Carry out the action and return the exit code."""
    return {"convert": _convert, "show": _show, "overlap": _overlap, "sample": _sample}[args.action](args)


def _add_reading_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", metavar="F", help="force a format instead of finding it by content; an unknown F lists them"
    )
    parser.add_argument("--dataset", metavar="D", help="the dataset's name, whatever the file says")


def _convert(args: argparse.Namespace) -> int:
    from searchparty.questions import load_questions, write_questions

    loaded = load_questions(args.input, args.format, args.dataset, args.limit)
    questions = loaded.questions if args.split is None else _of_split(args.split, loaded.questions, args.input)
    if args.without is not None:
        from searchparty.questions.overlap import shared_with

        shared = set(shared_with(questions, load_questions(args.without).questions))
        questions = [question for question in questions if question.key not in shared]
        print(f"{_count(len(shared), 'question')} left out that {args.without} asks too", file=sys.stderr)
        if not questions:
            raise UserError(f"{args.input}: every question of it is asked by {args.without} too, so none is left")
    write_questions(args.output, questions)
    _report_skipped(loaded)
    datasets = ", ".join(dict.fromkeys(question.dataset for question in questions))
    without = sum(not question.golden_answers for question in questions)
    print(
        f"{args.output}: {_count(len(questions), 'question')} (format {loaded.format}, dataset {datasets}), "
        f"{without} without golden answers, {_count(len(loaded.skipped), 'record')} skipped"
    )
    return 0


def _of_split(split: str, questions: list[Question], source: Path) -> list[Question]:
    """The questions with this split where they do not say theirs. Raises UserError if one says another."""
    others = [question for question in questions if question.split not in (None, split)]
    if others:
        raise UserError(
            f"{source}: {_count(len(others), 'question')} of another split than {split}, such as {others[0].key} of "
            f"{others[0].split}; leave out --split, or convert a file of one split"
        )
    return [dataclasses.replace(question, split=split) for question in questions]


def _report_skipped(loaded: Loaded) -> None:
    for skipped in loaded.skipped:
        print(f"skipped {skipped.where}: {skipped.reason}", file=sys.stderr)


def _show(args: argparse.Namespace) -> int:
    from searchparty.questions import load_questions
    from searchparty.questions.formats.native import to_line

    loaded = load_questions(args.file, args.format, args.dataset, limit=None if args.id else args.limit)
    questions = loaded.questions
    if args.id:
        questions = [question for question in questions if args.id in (question.id, question.key)]
        if not questions:
            first = loaded.questions[0]
            raise UserError(
                f"{args.file}: no question has the id {args.id!r}; ids look like {first.id!r}, keys like {first.key!r}"
            )
    for question in questions:
        print(to_line(question) if args.json else _for_reading(question))
    return 0


def _for_reading(question: Question) -> str:
    more = len(question.golden_answers) - SHOWN_ANSWERS
    answers = " | ".join(question.golden_answers[:SHOWN_ANSWERS]) + (f" | ... {more} more" if more > 0 else "")
    facts = {
        "answers": answers or "(none given)",
        "evidence": " | ".join(question.supporting_titles),
        "hops": question.hops,
        "type": question.type,
        "split": question.split,
        "source": question.source,
    }
    lines = [f"{name + ':':<10}{_one_line(str(value))}" for name, value in facts.items() if value]
    return "\n  ".join([_one_line(question.key), _one_line(question.text), *lines]) + "\n"


def _one_line(text: str) -> str:
    from searchparty.episodes.printable import printable

    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _overlap(args: argparse.Namespace) -> int:
    from searchparty.questions import read_questions
    from searchparty.questions.near_copies import RUN, find_near_copies
    from searchparty.questions.overlap import Agreement, find_overlap

    first, second = read_questions(args.first), read_questions(args.second) if args.second else None
    found = find_overlap(first, second)
    near = find_near_copies(first, second) if second is not None else ()
    counts = {str(answers): found.count(answers) for answers in Agreement}
    if args.json:
        summary = {
            "pairs": found.pairs,
            "texts": len(found.groups),
            "answers": counts,
            "near_copies": [dataclasses.asdict(one) for one in near],
        }
        print(json.dumps({**summary, **dataclasses.asdict(found)}, ensure_ascii=False))
        return 0
    files = " and ".join(
        f"{path} ({size})" for path, size in zip((args.first, args.second)[: len(found.sizes)], found.sizes, strict=True)
    )
    print(
        f"{files}: {_count(len(found.groups), 'text')} {'shared' if args.second else 'repeated'}, {_count(found.pairs, 'pair')}"
    )
    print("golden answers: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    other = f" ({len(found.same_key_other_text)} of them for different questions)" if found.same_key_other_text else ""
    print(f"same key: {len(found.same_key)}{other}, same official id: {len(found.same_official_id)}")
    if second is not None:
        print(f"near copies: {_count(len(near), 'pair')} with an answer and {RUN} words in a row in common")
        for one in near[:SHOWN_GROUPS]:
            print(f"  {_one_line(one.first)} ~ {_one_line(one.second)}: {one.words} ({_one_line(one.answer)})")
    _print_groups(found)
    return 0


def _print_groups(found: Overlap) -> None:
    for group in found.groups[:SHOWN_GROUPS]:
        lines = [group.text, f"answers: {group.answers}", *group.first, *group.second]
        print("\n" + "\n  ".join(map(_one_line, lines)))
    if len(found.groups) > SHOWN_GROUPS:
        print(f"\n... {len(found.groups) - SHOWN_GROUPS} more; --json prints all")


def _sample(args: argparse.Namespace) -> int:
    from searchparty.questions.sample import sample_attribution, sample_corpus, sample_questions

    sources = (sample_questions(), sample_corpus(), sample_attribution())
    targets = [args.output / source.name for source in sources]
    for target in targets:
        if target.exists():
            raise UserError(f"{target}: exists already; name another folder or remove it")
    try:
        args.output.mkdir(parents=True, exist_ok=True)
        for source, target in zip(sources, targets, strict=True):
            shutil.copyfile(source, target)
    except OSError as error:
        raise UserError(f"{args.output}: cannot be written ({error.strerror}); name another folder") from None
    print("\n".join(str(target) for target in targets))
    return 0


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
