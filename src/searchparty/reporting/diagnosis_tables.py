"""The diagnosis in a report: in words for every system, the way of the evidence side by side, and the trainings."""

from __future__ import annotations

from collections.abc import Sequence

from searchparty.diagnosis.evidence import Interface
from searchparty.diagnosis.reading import StageDiagnosis
from searchparty.diagnosis.summary import Diagnosis, loss_at
from searchparty.diagnosis.wording import (
    MEANINGS,
    alarms_in_words,
    course_in_words,
    examples_in_words,
    in_words,
    not_played_in_words,
)
from searchparty.reporting.document import Cell, Drawing, Number, Section, Table
from searchparty.reporting.systems import System


def diagnosis_sections(systems: Sequence[System]) -> list[Section]:
    """Where evidence was lost, system beside system, then each in words with episodes to read."""
    found = [(system.title, system.diagnosis.whole) for system in systems]
    by_dataset = [list(system.diagnosis.datasets.items()) for system in systems]
    meanings = [f"{interface.value}: {meaning}." for interface, meaning in MEANINGS.items()]
    overview = Section("Diagnosis", meanings, [losses_table("losses", found), evidence_table("evidence", found)])
    each = [
        Section(
            title,
            [*not_played_in_words(system.diagnosis), *in_words(diagnosis), *examples_in_words(diagnosis.losses)],
            [
                roles_table(f"roles-{number}", diagnosis),
                *([losses_table(f"losses-{number}", datasets, "dataset")] if datasets else []),
            ],
            level=3,
        )
        for number, (system, (title, diagnosis), datasets) in enumerate(zip(systems, found, by_dataset, strict=True), start=1)
    ]
    return [overview, *each]


def training_section(title: str, number: int, stage: StageDiagnosis, drawings: Sequence[Drawing]) -> Section:
    """One stage of a training: when behaviour changed, and how it ended."""
    sentences = course_in_words(stage)
    tables = []
    if stage.late is not None:
        first, last = stage.late_steps[0], stage.late_steps[-1]
        sentences += [
            f"Its last recorded steps ({first} to {last}):",
            *in_words(stage.late),
            *examples_in_words(stage.late.losses),
        ]
    if stage.steps:
        tables.append(steps_table(f"steps-{number}", stage))
    return Section(
        f"Training: {title}, stage {stage.name}", [*sentences, *alarms_in_words(stage.alarms), *stage.notes], tables, drawings
    )


def losses_table(name: str, found: Sequence[tuple[str, Diagnosis]], of: str = "system") -> Table:
    """One row per system, or dataset of one; one column per interface that lost anything."""
    seen = [one for one in Interface if any(loss.interface is one for _, diagnosis in found for loss in diagnosis.losses)]
    rows: list[list[Cell]] = []
    for title, diagnosis in found:
        cells = [_share(*loss_at(interface, diagnosis)) for interface in seen]
        rows.append([title, Number(diagnosis.right, 1, 100, *diagnosis.intervals["right"]), *cells])
    notes = ["In % of all episodes, [95 %]; every episode that is not right is lost at exactly one interface."]
    return Table(name, "Where evidence was lost", (of, "right", *(one.value for one in seen)), rows, notes)


def _share(share: float, low: float, high: float) -> Number:
    return Number(share, 1, 100, low, high)


def evidence_table(name: str, found: Sequence[tuple[str, Diagnosis]]) -> Table:
    """How far golden passages came, for systems whose questions name them."""
    columns = (
        "system",
        "passages",
        "found",
        "in a report",
        "in a selected report",
        "right answers",
        "reports used",
        "repeated",
    )
    rows: list[list[Cell]] = []
    for title, diagnosis in found:
        way = diagnosis.evidence
        used = [
            Number(getattr(diagnosis, share), 1, 100, *diagnosis.intervals.get(share, ()))
            for share in ("reports_used", "repeated_searches")
        ]
        if way is not None:
            shares = [
                Number(getattr(way, part), 1, 100, *diagnosis.intervals.get(part, ()))
                for part in ("found", "reported", "selected", "answered")
            ]
            rows.append([title, Number(way.passages, 0), *shares, *used])
        else:
            rows.append([title, *(Number(None) for _ in range(5)), *used])
    notes = ["In % of golden passages, [95 %]; right answers in % of episodes, reports used of reports, repeated of searches."]
    return Table(name, "The way of the evidence", columns, rows, notes)


def roles_table(name: str, diagnosis: Diagnosis) -> Table:
    """What every role did and used."""
    columns = (
        "role", "episodes", "agents", "calls", "searches", "tokens in", "without repeated history", "tokens out", "characters",
        "cut", "wrong form", "kinds",
    )  # fmt: skip
    rows: list[list[Cell]] = []
    for role, use in diagnosis.roles.items():
        kinds = ", ".join(f"{kind} {count}" for kind, count in use.format_failures.items())
        digits = {
            "agents": 2, "calls": 2, "searches": 2, "input_tokens": 0, "unique_input_tokens": 0, "output_tokens": 0,
            "characters": 0, "cut": 2,
        }  # fmt: skip
        means = [Number(getattr(use, mean), shown, 1, *use.intervals.get(mean, ())) for mean, shown in digits.items()]
        rows.append([role, Number(use.episodes, 0), *means, Number(sum(use.format_failures.values()), 0), kinds or "–"])
    return Table(
        name, "Roles", columns, rows, ["Means per episode in which the role acted, [95 %]; turns in the wrong form are totals."]
    )


def steps_table(name: str, stage: StageDiagnosis) -> Table:
    """The recorded steps of a stage."""
    columns = (
        "step", "episodes", "right", "searches", "no search", "found", "in a report", "in a selected report", "all right",
        "all wrong", "mixed", "lost most at",
    )  # fmt: skip
    rows: list[list[Cell]] = []
    for one in stage.steps:
        of, way = one.diagnosis, one.diagnosis.evidence
        shares = (None, None, None) if way is None else (way.found, way.reported, way.selected)
        groups = (of.episode_groups.all_right, of.episode_groups.all_wrong, of.episode_groups.mixed)
        rows.append([
            Number(one.step, 0), Number(of.episodes, 0), Number(of.right, 1, 100, *of.intervals["right"]),
            Number(of.searches, 2, 1, *of.intervals["searches"]), Number(of.no_search, 1, 100, *of.intervals["no_search"]),
            *(
                Number(share, 1, 100, *of.intervals.get(part, ()))
                for part, share in zip(("found", "reported", "selected"), shares, strict=True)
            ),
            *(Number(count, 0) for count in groups), of.losses[0].interface.value if of.losses else "–",
        ])  # fmt: skip
    return Table(name, "Recorded steps", columns, rows, ["Shares in %, [95 %]; groups are attempts at one question."])
