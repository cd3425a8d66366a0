"""The drawings of a report, as SVG that stands inside the page: quality over cost, and the courses of a training.

Drawn by matplotlib, which is optional. Texts stay texts: they are neither read as formulas nor turned into outlines.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from searchparty.diagnosis.reading import StageDiagnosis
from searchparty.diagnosis.series import Series
from searchparty.episodes.printable import printable
from searchparty.errors import missing_package
from searchparty.reporting.document import Drawing

_TITLE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class CostPoint:
    """One system in the plane of quality and cost."""

    title: str
    cost: float
    quality: float
    low: float
    high: float


def can_draw() -> bool:
    """Whether matplotlib is there."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        return False
    return True


def draw_cost_quality(name: str, title: str, cost_label: str, metric: str, points: Sequence[CostPoint]) -> Drawing:
    """A score with its interval over what it cost, one mark for each system. Raises UserError without matplotlib."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for point in points:
            ends = [[100 * max(0.0, point.quality - point.low)], [100 * max(0.0, point.high - point.quality)]]
            axes.errorbar([point.cost], [100 * point.quality], yerr=ends, fmt="o", capsize=3, label=_short(point.title))
        axes.set(xlabel=cost_label, ylabel=f"{metric} in %, macro [95 %]")
        _finish(axes)

    return Drawing(name, title, _svg(name, draw, height=4.2))


def draw_courses(name: str, stage: StageDiagnosis) -> Drawing:
    """The courses of one training stage, a panel for every unit; changes are shaded. Raises as above."""
    panels: dict[str, list[Series]] = {}
    for series in stage.series:
        panels.setdefault(series.unit, []).append(series)

    def draw(figure: Any) -> None:
        for axes, (label, group) in zip(
            figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0], panels.items(), strict=True
        ):
            for series in group:
                _draw_series(axes, series)
            for change in stage.changes:
                if any((change.kind, change.name) == (series.kind, series.name) for series in group):
                    axes.axvspan(change.after_step, change.by_step, alpha=0.12, color="tab:red", linewidth=0)
            axes.set_ylabel(label)
            _finish(axes)
            axes.set_xlabel("step")

    return Drawing(name, f"stage {stage.name}, step by step; shaded: changes", _svg(name, draw, height=2.6 * len(panels)))


def _draw_series(axes: Any, series: Series) -> None:
    scale = 100 if series.is_share else 1
    style = "o-" if series.kind == "development" or len(series.values) < 3 else "-"
    label = f"{series.name}{' (development)' if series.kind == 'development' else ''}"
    axes.plot(series.steps, [scale * value for value in series.values], style, label=_short(label), linewidth=1.2, markersize=3)


def _finish(axes: Any) -> None:
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def _svg(name: str, draw: Callable[[Any], None], height: float) -> str:
    """One `svg` element; equal data give equal text."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_package("matplotlib", "plot", "drawing plots") from None
    with (
        warnings.catch_warnings(),
        rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "text.parse_math": False, "text.usetex": False}),
    ):
        figure = Figure(figsize=(10, height), layout="constrained")
        draw(figure)
        stream = io.StringIO()
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # texts stay texts: whoever shows them has the font
        figure.savefig(stream, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Type", "Format")))
    text = stream.getvalue()
    return text[text.index("<svg") :].strip()


def _short(text: str) -> str:
    """For a legend, where a leading underscore would hide the entry."""
    shown = printable(text)
    shown = shown if len(shown) <= _TITLE_LENGTH else f"{shown[:_TITLE_LENGTH]} …"
    return f"\u2009{shown}" if shown.startswith("_") else shown
