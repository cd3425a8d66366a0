"""Lines of Prometheus' text format (version 0.0.4). Counts nothing itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


def header(name: str, kind: str, explanation: str) -> Iterator[str]:
    """What stands above the values of a metric; `kind` is `counter`, `gauge` or `histogram`."""
    yield f"# HELP searchparty_{name} {explanation}"
    yield f"# TYPE searchparty_{name} {kind}"


def counter(name: str, explanation: str, labels: Sequence[str], counts: Mapping[tuple[str, ...], float]) -> Iterator[str]:
    """A whole counter; `counts` by the values of its labels, by an empty tuple if it has none."""
    yield from header(name, "counter", explanation)
    for values, count in counts.items():
        pairs = ",".join(f'{label}="{_escaped(value)}"' for label, value in zip(labels, values, strict=True))
        number = f"{count:.0f}" if float(count).is_integer() else repr(float(count))
        yield f"searchparty_{name}{f'{{{pairs}}}' if pairs else ''} {number}"


def histogram(name: str, explanation: str, bounds: Sequence[float], cells: Sequence[float]) -> Iterator[str]:
    """A whole histogram.

    Args:
        bounds: upper bounds of the buckets.
        cells: observations per bucket, those above the last bound, and the sum of all observed values [bounds + 2].
    """
    yield from header(name, "histogram", explanation)
    *counts, total = cells
    seen = 0.0
    for bound, count in zip((*map(str, bounds), "+Inf"), counts, strict=True):
        seen += count
        yield f'searchparty_{name}_bucket{{le="{bound}"}} {seen:.0f}'
    yield f"searchparty_{name}_sum {total!r}"
    yield f"searchparty_{name}_count {seen:.0f}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
