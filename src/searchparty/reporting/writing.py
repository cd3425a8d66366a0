"""From runs to a report on disk.

report.html     everything, on one page that needs nothing else
report.md       the same in plain text
tables/*.csv    every table as data
tables/*.tex    every table for a paper
plots/*.svg     every drawing, if matplotlib is there
model-card-N.md one for each training run, in the order in which they were named
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from searchparty.errors import UserError
from searchparty.evaluation.compared_runs import usual_metric
from searchparty.evaluation.intervals import MACRO
from searchparty.files import atomic_output
from searchparty.questions.types import Question
from searchparty.reporting.diagnosis_tables import diagnosis_sections, training_section
from searchparty.reporting.document import Document, Drawing, Section, Table
from searchparty.reporting.html import as_html
from searchparty.reporting.model_card import make_model_card
from searchparty.reporting.overlap_table import overlap_section
from searchparty.reporting.plain_formats import as_csv, as_latex, as_markdown
from searchparty.reporting.plots import CostPoint, draw_cost_quality, draw_courses
from searchparty.reporting.result_tables import METRIC_NAMES, Results
from searchparty.reporting.systems import Gathered, System

PAGE = "report.html"
PARTS = ("tables", "plots")


def make_report(
    found: Gathered,
    *,
    title: str = "Report",
    deviations: Sequence[str] = (),
    trained_on: Mapping[str, Sequence[Question]] = MappingProxyType({}),
    plots: bool = True,
    results: Results | None = None,
) -> Document:
    """The document of what was gathered.

    Args:
        trained_on: name to questions that models were trained on, besides those of the training runs.
        deviations: what else a reader should know of how this differs from what was planned or published, one line each.
        plots: whether to draw; needs matplotlib.
        results: those that model cards of the same runs are given too.

    Raises:
        UserError: nothing was gathered, or matplotlib is missing.
    """
    if not found.systems and not found.trainings:
        raise UserError("there is nothing to report; name runs of searchparty eval or searchparty train", *found.notes)
    document = Document(title)
    if found.notes:
        document.sections.append(Section("What is missing", found.notes))
    if found.systems:
        document.sections.append((results or Results()).of(found.systems))
        if plots:
            document.sections.append(Section("Quality and cost", drawings=_cost_drawings(found.systems)))
        document.sections.extend(diagnosis_sections(found.systems))
    number = 0
    for training in found.trainings:
        for stage in training.stages:
            number += 1
            drawings = [draw_courses(f"courses-{number}", stage)] if plots and stage.series else []
            document.sections.append(training_section(training.title, number, stage, drawings))
    if found.systems:
        document.sections.append(Section("Protocol", tables=_setting_tables(found.systems)))
    document.sections.append(overlap_section(found, trained_on))
    document.sections.append(_deviations(found, deviations))
    return document


def write_report(document: Document, folder: Path) -> Path:
    """Write every format; tables and plots of an earlier report are removed. Returns the page.

    Raises:
        UserError: the folder holds something else, or cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder}: is a file; give a directory for the report")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / PAGE).is_file():
        raise UserError(f"{folder}: holds other files but no report; give another directory with -o")
    for part in PARTS:
        shutil.rmtree(folder / part, ignore_errors=True)
    for table in document.tables:
        _write(folder / "tables" / f"{table.name}.csv", as_csv(table))
        _write(folder / "tables" / f"{table.name}.tex", as_latex(table))
    for drawing in document.drawings:
        _write(folder / "plots" / f"{drawing.name}.svg", drawing.svg)
    _write(folder / "report.md", as_markdown(document))
    _write(folder / PAGE, as_html(document))
    return folder / PAGE


def write_model_cards(found: Gathered, folder: Path, results: Results) -> list[Path]:
    """A card for each training run beside the report; those of an earlier report are removed."""
    for old in folder.glob("model-card-*.md"):
        old.unlink()
    cards = []
    for number, training in enumerate(found.trainings, start=1):
        cards.append(folder / f"model-card-{number}.md")
        _write(cards[-1], as_markdown(make_model_card(training, found.systems, results)))
    return cards


def _cost_drawings(systems: Sequence[System]) -> list[Drawing]:
    metric = usual_metric(systems[0].path)
    costs = {
        "searches": "searches per episode", "input_tokens": "input tokens per episode", "usd": "USD per episode",
    }  # fmt: skip
    drawings = []
    for key, label in costs.items():
        points = [
            CostPoint(system.title, cost, quality["value"], quality["low"], quality["high"])
            for system in systems
            for quality in [system.summary["quality"][MACRO][metric]]
            if (cost := _cost(system, key)) is not None
        ]
        if points:
            name = f"quality-by-{key.replace('_', '-')}"
            drawings.append(draw_cost_quality(name, f"Quality over {label}", label, METRIC_NAMES[metric], points))
    return drawings


def _cost(system: System, key: str) -> float | None:
    if key == "usd":
        return None if system.usd is None else system.usd.value
    cost: float | None = system.summary["behaviour"]["all"][key]
    return cost


def _setting_tables(systems: Sequence[System]) -> list[Table]:
    """What all systems share is said once; what differs, for each."""
    keys = systems[0].setting
    shared = [key for key in keys if len({system.setting[key] for system in systems}) == 1]
    tables = [Table("setting", "The same in all systems", ("what", "value"), [[key, keys[key]] for key in shared])]
    rows = [[key, system.title, system.setting[key]] for key in keys if key not in shared for system in systems]
    return [*tables, Table("settings", "Different", ("what", "system", "value"), rows)] if rows else tables


def _deviations(found: Gathered, given: Sequence[str]) -> Section:
    lines = list(given)
    lines += [f"{system.title} departs from its protocol: {line}" for system in found.systems for line in system.departures]
    if len({training.recipe.seed for training in found.trainings}) == 1:
        lines.append("One training seed: intervals are over questions, not over what training again would give.")
    return Section("Deviations", lines or ["None was named, and no run says that it departs from its protocol."])


def _write(path: Path, text: str) -> None:
    with atomic_output(path) as stream:
        stream.write(text)
