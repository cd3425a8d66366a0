"""Tables of results: every system beside the others, per dataset, and against the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from searchparty.errors import UserError
from searchparty.evaluation.compared_runs import differences_of_setting, read_run, usual_metric
from searchparty.evaluation.comparison import Comparison, compare
from searchparty.evaluation.estimates import Estimate
from searchparty.evaluation.intervals import MACRO
from searchparty.evaluation.scoring import NOT_PLAYED
from searchparty.judging.run import read_judgement
from searchparty.reporting.document import Cell, Number, Section, Table
from searchparty.reporting.systems import System, differing_settings

METRIC_NAMES = {"exact_match": "Exact match", "f1": "F1", "f1_joined": "F1 joined"}
"""What is compared, in words."""


def results_section(systems: Sequence[System]) -> Section:
    """Quality, behaviour and cost of every system; differences to the first where they may be compared."""
    metric = usual_metric(systems[0].path)
    tables = [_overview(systems), _costs(systems), *_datasets(systems, metric), *_fewer_attempts(systems)]
    sentences = [f"{system.title}: {line}" for system in systems for line in _cautions(system)]
    if differing := differing_settings(systems):
        sentences.append(f"The systems differ in {', '.join(differing)}: a difference in quality may come from that alone.")
    if len(systems) > 1:
        runs = [read_run(system.path, metric, costs=False) for system in systems]
        if unequal := [line for line in differences_of_setting(runs) if line.startswith("protocol")]:
            sentences += ["The systems are not compared, since they did not follow the same protocol.", *unequal]
        else:
            try:
                tables[1:1] = _differences(systems, compare(runs), METRIC_NAMES[metric])
            except UserError as error:
                sentences += ["The systems are not compared, since they did not answer the same questions.", *error.lines[:-1]]
    return Section("Results", sentences, [*tables, *_judged(systems)])


class Results:
    """Sections of results, each computed once: a report and its model cards often show the same systems."""

    def __init__(self) -> None:
        self._made: dict[tuple[Path, ...], Section] = {}

    def of(self, systems: Sequence[System]) -> Section:
        """As `results_section`."""
        paths = tuple(system.path for system in systems)
        if paths not in self._made:
            self._made[paths] = results_section(systems)
        return self._made[paths]


def rate(value: Mapping[str, Any]) -> Number:
    """A rate of a summary in per cent, with its interval."""
    return Number(value["value"], 1, 100, value["low"], value["high"])


def _mean(behaviour: Mapping[str, Any], name: str, digits: int, scale: float = 1.0) -> Number:
    """A mean over episodes with its interval, which summaries of older versions do not have."""
    low, high = behaviour.get("intervals", {}).get(name, (None, None))
    return Number(behaviour[name], digits, scale, low, high)


def _overview(systems: Sequence[System]) -> Table:
    k = "/".join(str(count) for count in sorted({system.samples for system in systems}))
    columns = ("system", "questions", f"EM avg@{k}", f"pass@{k}", f"all-{k}", "F1", "answered", "no search")
    rows: list[list[Cell]] = []
    for system in systems:
        quality, behaviour = system.summary["quality"][MACRO], system.summary["behaviour"]["all"]
        rows.append([
            system.title,
            Number(quality["questions"], 0),
            *(rate(quality[key]) for key in ("exact_match", "pass_at_k", "all_k_right", "f1")),
            _mean(behaviour, "answered", 1, 100),
            _mean(behaviour, "no_search", 1, 100),
        ])  # fmt: skip
    notes = ["In %; macro over datasets, [95 % interval by drawing questions again]. Every question asked counts."]
    return Table("results", "Quality", columns, rows, notes)


def _costs(systems: Sequence[System]) -> Table:
    columns = (
        "system", "searches", "empty searches", "steps", "tokens in", "without repeated history", "tokens out", "USD", "failed",
    )  # fmt: skip
    rows: list[list[Cell]] = []
    for system in systems:
        of = system.summary["behaviour"]["all"]
        tokens = [_mean(of, key, 0) for key in ("input_tokens", "unique_input_tokens", "output_tokens")]
        acts = [_mean(of, key, 2) for key in ("searches", "empty_searches", "steps")]
        usd = Number(None) if system.usd is None else Number(system.usd.value, 6, 1, system.usd.low, system.usd.high)
        rows.append([system.title, *acts, *tokens, usd, Number(of["service_failures"], 0)])
    notes = [
        "Per episode, [95 %]; USD at the prices of the run's recipe; failed: episodes that a failing service ended, which "
        "count as wrong."
    ]
    return Table("cost", "What it took", columns, rows, notes)


def _datasets(systems: Sequence[System], metric: str) -> list[Table]:
    names = list(dict.fromkeys(name for system in systems for name in system.summary["behaviour"] if name != "all"))
    if len(names) < 2:
        return []
    rows: list[list[Cell]] = []
    for system in systems:
        quality = system.summary["quality"]
        rows.append([system.title, *(rate(quality[name][metric]) if name in quality else Number(None) for name in names)])
    return [Table("datasets", f"{METRIC_NAMES[metric]} by dataset", ("system", *names), rows, ["In %, [95 %]."])]


def _fewer_attempts(systems: Sequence[System]) -> list[Table]:
    """What fewer attempts than were made would have reached, where anything lies between one and all."""
    found = [system.summary["quality"][MACRO].get("pass_at", {}) for system in systems]
    columns = sorted({k for passes in found for k in passes}, key=int)
    if not columns:
        return []
    rows: list[list[Cell]] = [
        [system.title, *(rate(passes[k]) if k in passes else Number(None) for k in columns)]
        for system, passes in zip(systems, found, strict=True)
    ]
    notes = ["In %, macro, [95 %]: unbiased, over all choices of so many among the attempts that were made."]
    return [Table("passes", "Right in one of fewer attempts", ("system", *(f"pass@{k}" for k in columns)), rows, notes)]


def _judged(systems: Sequence[System]) -> list[Table]:
    """What judges said, where any was asked; no share from a judge that called a canary right."""
    found = [(system, judgement) for system in systems if (judgement := read_judgement(system.path)) is not None]
    if not found:
        return []
    columns = ("system", "judge", "prompt", "right for the judge", "exact match", "agree", "kappa", "canaries", "unusable")
    rows: list[list[Cell]] = []
    for system, said in found:
        right = Number(None) if said.failed_canaries else Number(said.right, 1, 100, said.low, said.high)
        ends = said.intervals
        rows.append([
            system.title, said.model, f"{said.prompt} ({said.prompt_digest})", right,
            Number(said.exact_match, 1, 100, *ends.get("exact_match", ())),
            Number(said.agreement.share, 1, 100, *ends.get("agreement", ())),
            Number(said.agreement.kappa, 2, 1, *ends.get("kappa", ())),
            Number(said.failed_canaries, 0), Number(len(said.unusable), 0),
        ])  # fmt: skip
    notes = [
        "Secondary: exact match is the score. Canaries: wrong answers that the judge did not call wrong; with any, its "
        "share is not shown."
    ]
    return [Table("judge", "A judge beside the score", columns, rows, notes)]


def _differences(systems: Sequence[System], compared: Sequence[Comparison], metric: str) -> list[Table]:
    """Against the first system: over all datasets, and for each of several."""
    first, others = systems[0].title, list(zip(systems[1:], compared[1:], strict=True))
    columns = ("system", "difference", "wins", "ties", "losses", "p", "p by Holm", "detectable")
    rows: list[list[Cell]] = [
        [
            system.title,
            _gap(row.differences[MACRO]),
            *(Number(count, 0) for count in (row.wins, row.ties, row.losses)),
            *(Number(p, 4) for p in (row.p, row.adjusted_p)),
            Number(row.detectable, 1, 100),
        ]
        for system, row in others
    ]
    notes = [
        f"{metric} less that of {first}, in points, macro, paired by question [95 %]. The first row is the "
        "primary comparison, whose p is not corrected. Detectable: what these questions would have shown four times in five."
    ]
    tables = [Table("differences", f"Against {first}", columns, rows, notes)]
    names = list(compared[0].differences)
    if len(names) > 2:
        by_dataset: list[list[Cell]] = [[system.title, *map(_gap, row.differences.values())] for system, row in others]
        notes = [f"{metric} less that of {first}, in points, paired by question [95 %]; not corrected for their number."]
        title = f"Against {first}, by dataset"
        tables.append(Table("differences-by-dataset", title, ("system", *names), by_dataset, notes))
    return tables


def _gap(gap: Estimate) -> Number:
    return Number(gap.value, 1, 100, gap.low, gap.high, signed=True)


def _cautions(system: System) -> list[str]:
    """What a reader must know before believing the numbers."""
    of, lines = system.summary["behaviour"]["all"], []
    if of["service_failures"]:
        lines.append(f"{of['service_failures']} episodes were ended by a failing service and count as wrong; resume the run.")
    if missing := of["stop_reasons"].get(NOT_PLAYED):
        lines.append(f"the run is not finished: {missing} episodes were not played and count as wrong; resume the run.")
    if of["unscorable"]:
        lines.append(f"{of['unscorable']} episodes have golden answers that normalise to nothing; they score 0.")
    if system.not_token_exact:
        lines.append("a model exchanged text only, so tokens without repeated history are not known.")
    return lines
