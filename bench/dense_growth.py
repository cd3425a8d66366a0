"""Memory and disk of a compressed dense index as it grows: IVF with 4-bit product quantisation and SQ8, over int8 vectors.

    python bench/dense_growth.py [--vectors 100000,200000] [--dimension 768]

Vectors are random, which changes neither size nor memory; recall over random vectors would say nothing and is not measured.
Memory of building is not extended to more vectors: the sample that is trained on grows with their square root only.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from own_process import in_own_process

from searchparty.retrieval.building import no_progress
from searchparty.retrieval.dense.vectors import Vectors

ROWS_AT_A_TIME = 16_384
QUERIES = 200
FULL = 21_015_324
"""Passages of wiki-18."""


def draw(file: Path, vectors: int, dimension: int) -> None:
    """Write int8 vectors of about length 127."""
    generator = np.random.default_rng(0)
    values = np.lib.format.open_memmap(file, mode="w+", dtype=np.int8, shape=(vectors, dimension))
    for start in range(0, vectors, ROWS_AT_A_TIME):
        rows = generator.standard_normal((min(ROWS_AT_A_TIME, vectors - start), dimension), dtype=np.float32)
        rows *= 127 / np.linalg.norm(rows, axis=1, keepdims=True)
        values[start : start + len(rows)] = rows.round()


def load(file: Path) -> Vectors:
    """The vectors, mapped."""
    values = np.load(file, mmap_mode="r")
    return Vectors(values, np.full(len(values), 1 / 127, np.float32), 1.01)


def build(file: Path, target: Path) -> dict[str, float]:
    """Build the FAISS index."""
    from searchparty.retrieval.dense.faiss_search import build_faiss

    started = time.perf_counter()
    build_faiss(load(file), "ivf", target, no_progress)
    return {"seconds": time.perf_counter() - started, "disk, MB": (target.stat().st_size + file.stat().st_size) / 1e6}


def search(file: Path, target: Path) -> dict[str, float]:
    """Open it and search."""
    from searchparty.retrieval.dense.faiss_search import FaissSearch

    vectors = load(file)
    opened = FaissSearch(vectors, "ivf", target, 64)
    queries = np.random.default_rng(1).standard_normal((QUERIES, vectors.dimension), dtype=np.float32)
    started = time.perf_counter()
    opened.search(queries, 10)
    return {"queries/s": QUERIES / (time.perf_counter() - started)}


def main() -> None:
    """Measure at each size, and extend the line through the first and the last."""
    parser = argparse.ArgumentParser(description="Memory and disk of a compressed dense index as it grows.")
    parser.add_argument("--vectors", default="100000,200000", help="sizes, with commas (default: %(default)s)")
    parser.add_argument("--dimension", type=int, default=768)
    options = parser.parse_args()
    sizes = [int(size) for size in options.vectors.split(",")]
    measured: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for size in sizes:
            file, target = Path(name) / f"{size}.npy", Path(name) / f"{size}.faiss"
            draw(file, size, options.dimension)
            for stage, figures in (
                ("build", in_own_process(build, file, target)),
                ("search", in_own_process(search, file, target)),
            ):
                for measure, value in figures.items():
                    measured.setdefault(f"{stage}: {measure}", []).append(value)
    for measure, values in measured.items():
        line = f"{measure:<32} " + " ".join(f"{value:>10,.1f}" for value in values)
        if "MB" in measure and not measure.startswith("build: peak") and "build: of it" not in measure and len(sizes) > 1:
            slope = (values[-1] - values[0]) / (sizes[-1] - sizes[0])
            line += f"   {1e6 * slope:>8,.0f} a million, {(values[-1] + slope * (FULL - sizes[-1])) / 1000:,.1f} GB at {FULL:,}"
        print(line)


if __name__ == "__main__":
    main()
