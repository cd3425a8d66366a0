"""Kernels for cards: one multiplies vectors and keeps the best score of each group of rows, no other score is written out; one
scores the rows of chosen groups where they lie.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_DEPTH = 64
"""Components multiplied at a time."""
_MANY = 64
"""From so many queries on, multiplying takes longer than reading the vectors, and what loads cost besides shows."""
_LEAST_SHARED_BYTES = 101_376
"""Fast memory of a processor on the smallest cards that this runs on."""


@triton.jit  # type: ignore[untyped-decorator]
def _masked_kernel(  # type: ignore[no-untyped-def]
    queries, values, scales, maxima, query_count, row_count, dimension, group_count,
    HAS_SCALES: tl.constexpr, QUERIES: tl.constexpr, ROWS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    # One axis of programs, since the second one ends at 65,535. Blocks of queries follow one another, to share a group's rows.
    blocks = tl.cdiv(query_count, QUERIES)
    query = tl.program_id(0) % blocks * QUERIES + tl.arange(0, QUERIES)
    group = tl.program_id(0) // blocks
    row = group.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    scores = tl.zeros((QUERIES, ROWS), dtype=tl.float32)
    for start in range(0, dimension, DEPTH):
        component = start + tl.arange(0, DEPTH)
        inside = component[None, :] < dimension
        some_queries = tl.load(
            queries + query[:, None] * dimension + component[None, :], mask=(query[:, None] < query_count) & inside, other=0.0
        )
        some_values = tl.load(
            values + row[:, None] * dimension + component[None, :], mask=(row[:, None] < row_count) & inside, other=0.0
        )
        scores = tl.dot(some_queries, tl.trans(some_values.to(tl.float16)), scores)
    if HAS_SCALES:
        scores *= tl.load(scales + row, mask=row < row_count, other=0.0)[None, :]
    scores = tl.where(row[None, :] < row_count, scores, float("-inf"))
    tl.store(maxima + query.to(tl.int64) * group_count + group, tl.max(scores, axis=1), mask=query < query_count)


@triton.jit  # type: ignore[untyped-decorator]
def _unmasked_kernel(  # type: ignore[no-untyped-def]
    queries, values, scales, maxima, query_count, row_count, group_count, DIMENSION: tl.constexpr,
    HAS_SCALES: tl.constexpr, QUERIES: tl.constexpr, ROWS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    # As `_masked_kernel`; but masks take a fifth of the time of many queries, so the last row and the last query stand in for
    # those behind them.
    blocks = tl.cdiv(query_count, QUERIES)
    query = tl.program_id(0) % blocks * QUERIES + tl.arange(0, QUERIES)
    group = tl.program_id(0) // blocks
    first_row = group.to(tl.int64) * ROWS
    row = tl.minimum(tl.arange(0, ROWS), (row_count - first_row).to(tl.int32) - 1)
    component = tl.arange(0, DEPTH)
    some_queries = queries + tl.minimum(query, query_count - 1)[:, None] * DIMENSION + component[None, :]
    some_values = values + first_row * DIMENSION + row[:, None] * DIMENSION + component[None, :]
    scores = tl.zeros((QUERIES, ROWS), dtype=tl.float32)
    for _ in range(0, DIMENSION, DEPTH):
        scores = tl.dot(tl.load(some_queries), tl.trans(tl.load(some_values).to(tl.float16)), scores)
        some_queries += DEPTH
        some_values += DEPTH
    if HAS_SCALES:
        scores *= tl.load(scales + first_row + row)[None, :]
    tl.store(maxima + query.to(tl.int64) * group_count + group, tl.max(scores, axis=1), mask=query < query_count)


@triton.jit  # type: ignore[untyped-decorator]
def _group_kernel(  # type: ignore[no-untyped-def]
    queries, values, scales, groups, scores, row_count, dimension, groups_per_query,
    HAS_SCALES: tl.constexpr, ROWS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    # One program for each chosen group of each query.
    place = tl.program_id(0).to(tl.int64)
    query = place // groups_per_query
    offset = tl.arange(0, ROWS)
    row = tl.load(groups + place) * ROWS + offset
    sums = tl.zeros((ROWS,), dtype=tl.float32)
    for start in range(0, dimension, DEPTH):
        component = start + tl.arange(0, DEPTH)
        inside = component < dimension
        part = tl.load(queries + query * dimension + component, mask=inside, other=0.0).to(tl.float32)
        some_values = tl.load(
            values + row[:, None] * dimension + component[None, :], mask=(row[:, None] < row_count) & inside[None, :], other=0.0
        )
        sums += tl.sum(some_values.to(tl.float32) * part[None, :], axis=1)
    if HAS_SCALES:
        sums *= tl.load(scales + row, mask=row < row_count, other=0.0)
    tl.store(scores + place * ROWS + offset, tl.where(row < row_count, sums, float("-inf")))


def can_fuse(group_rows: int) -> bool:
    """Whether the kernels take groups of this many rows."""
    return group_rows >= 16 and group_rows & (group_rows - 1) == 0


def _stages(device: torch.device, rows: int) -> int:
    """How many pieces of queries and vectors fit the fast memory of a processor at once; more than 4 bring nothing."""
    properties = torch.cuda.get_device_properties(device)
    room = int(getattr(properties, "shared_memory_per_block_optin", _LEAST_SHARED_BYTES))
    return max(1, min(4, room // (rows * _DEPTH * 2)))


def fused_maxima(queries: torch.Tensor, values: torch.Tensor, scales: torch.Tensor | None, group_rows: int) -> torch.Tensor:
    """The best score of each group of consecutive rows, float32 [queries, groups].

    Args:
        queries: float16 [queries, dimension].
        values: float16 or int8 [rows, dimension].
        scales: float32 [rows] for int8, else None.
        group_rows: rows of a group; `can_fuse` says which sizes it takes.
    """
    groups = triton.cdiv(len(values), group_rows)
    maxima = torch.empty((len(queries), groups), device=values.device)
    together = min(256, max(16, triton.next_power_of_2(len(queries))))
    grid = (triton.cdiv(len(queries), together) * groups,)
    tensors = queries.contiguous(), values, values if scales is None else scales, maxima
    how = {
        "HAS_SCALES": scales is not None, "QUERIES": together, "ROWS": group_rows, "DEPTH": _DEPTH,
        "num_warps": 8 if together > 64 else 4, "num_stages": _stages(values.device, together + group_rows),
    }  # fmt: skip
    dimension = values.shape[1]
    with torch.cuda.device(values.device):
        if len(queries) >= _MANY and dimension % _DEPTH == 0:
            _unmasked_kernel[grid](*tensors, len(queries), len(values), groups, DIMENSION=dimension, **how)
        else:
            _masked_kernel[grid](*tensors, len(queries), len(values), dimension, groups, **how)
    return maxima


def fused_scores(
    queries: torch.Tensor, values: torch.Tensor, scales: torch.Tensor | None, groups: torch.Tensor, group_rows: int
) -> torch.Tensor:
    """Scores of all rows of some groups, float32 [queries, groups of each · group_rows]; minus infinity behind the last row.

    Args:
        groups: int64 [queries, groups of each].
        queries, values, scales, group_rows: as for `fused_maxima`.
    """
    scores = torch.empty((len(queries), groups.shape[1] * group_rows), device=values.device)
    with torch.cuda.device(values.device):
        _group_kernel[(groups.numel(),)](
            queries.contiguous(), values, values if scales is None else scales, groups.contiguous(), scores,
            len(values), values.shape[1], groups.shape[1],
            HAS_SCALES=scales is not None, ROWS=group_rows, DEPTH=_DEPTH,
            num_warps=4,
        )  # fmt: skip
    return scores
