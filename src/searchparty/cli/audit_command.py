"""`searchparty audit`: prove from its record that a run trained on what was sampled, or name the first token that breaks it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", type=Path, metavar="RUN", help="directory of a training run")
    parser.add_argument("--stage", metavar="NAME", help="this stage alone")
    parser.add_argument("--step", type=int, metavar="N", help="this step alone")


def run(options: argparse.Namespace) -> int:
    """Returns 1 if something is not as it must be."""
    return 0 if audit_and_print(options.directory, options.stage, options.step) else 1


def audit_and_print(directory: Path, stage: str | None = None, step: int | None = None) -> bool:
    """Audit, print what was proved, and say whether everything was."""
    from rich.progress import Progress

    from searchparty.cli.console import make_console
    from searchparty.training.audit_run import audit_run

    errors = make_console(stderr=True)
    with Progress(console=errors, transient=True, disable=not errors.is_terminal) as progress:
        task = progress.add_task("audit", total=None)
        audits = audit_run(
            directory,
            stage=stage,
            step=step,
            on_step=lambda name, done, total: progress.update(task, description=name, completed=done, total=total),
        )
    for audit in audits:
        counts = audit.counts
        if audit.kind != "rl":
            print(f"stage {audit.name} ({audit.kind}): learns from no episodes of its own; nothing to prove")
            continue
        if audit.failed_step is not None:
            print(f"stage {audit.name}, step {audit.failed_step}: VIOLATION", file=sys.stderr)
            print(f"  {counts.violation}", file=sys.stderr)
            continue
        print(
            f"stage {audit.name}: {audit.steps} steps proved. {counts.episodes:,} episodes ({counts.set_aside} set aside), "
            f"{counts.sequences:,} sequences, {counts.tokens:,} tokens: ids as given and sampled; {counts.trained_tokens:,} of "
            f"them trained, all sampled by their own agent; {counts.teacher_tokens:,} scored by the teacher, the same ids; "
            f"{counts.groups:,} groups as declared; every advantage and weight computed again, equal to the last bit. "
            f"{counts.reports:,} reports trained where they were written, read {counts.reports_observed:,} times as observation"
        )
    return all(audit.failed_step is None for audit in audits)
