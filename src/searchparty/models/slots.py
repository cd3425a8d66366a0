"""The keys and values of all rows of a batch, in one block of memory, and the forward pass over some of these rows.

Each row (slot) holds its own tokens from position 0 on, so rows of any length stand side by side, come and go, and are copied
without touching the others. Knows the model's shapes; does not know requests, sampling or text.

Rows whose model has only full attention layers are supported: what a row may see is given as a mask of positions.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from math import prod
from typing import Any, Protocol

import numpy as np
import torch

from searchparty.errors import UserError


class CausalModel(Protocol):
    """What is used of a transformers causal language model."""

    config: Any
    device: torch.device
    dtype: torch.dtype

    def __call__(self, **inputs: Any) -> Any: ...

    def forward(self, **inputs: Any) -> Any: ...


def require_full_attention(config: Any) -> None:
    """Raises UserError for a model with sliding windows or recurrent layers, whose state is not one key and value per token."""
    layers = getattr(config, "layer_types", None)
    if layers is None and getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
        layers = ["sliding_attention"]
    other = sorted(set(layers or ()) - {"full_attention"})
    if other:
        raise UserError(
            f"model type {config.model_type}: the in-process engine cannot run layers of type {', '.join(other)}; "
            "serve the model with vLLM or SGLang and give --model http://..."
        )


class Slots:
    """A growing block of rows. `lengths[i]` is the number of tokens that row i holds."""

    def __init__(self, model: CausalModel, max_tokens: int) -> None:
        """Room is given back only where it would exceed `max_tokens` (rows times positions) and is not needed."""
        config = model.config
        require_full_attention(config)
        self.model = model
        self._max_tokens = max_tokens
        self.lengths: list[int] = []
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        head_size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        # [keys or values, layer, numbers]. Zeros at first, for a masked position must still hold finite numbers; those that
        # were held there before are as good.
        self._memory = torch.zeros(2, config.num_hidden_layers, 0, dtype=model.dtype, device=model.device)
        # [keys or values, layer, row, head, position, head size]: the first numbers of each layer's memory
        self._store = self._memory.view(*self._memory.shape[:2], 0, heads, 0, head_size)
        self._cache_name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"

    def reserve(self, rows: int, positions: int) -> None:
        """Make room for `rows` rows of `positions` tokens, those that are there included; what they hold stays."""
        old, held = self._store, len(self.lengths)
        if rows <= old.shape[2] and positions <= old.shape[4]:
            return
        on_cpu = old.device.type == "cpu"
        new_rows, new_positions = self._spare_room(rows, positions) if on_cpu else self._tight_room(rows, positions)
        numbers = new_rows * new_positions * old.shape[3] * old.shape[5]
        if numbers > self._memory.shape[2] or not on_cpu:
            self._memory = _zeros((*old.shape[:2], numbers), old.dtype, old.device)
        self._store = self._room(new_rows, new_positions)
        # Within one block of memory: rows that move on are moved last one first, so that none is written over before.
        for row in reversed(range(held)) if new_positions > old.shape[4] else range(held):
            length = self.lengths[row]
            self._store[:, :, row, :, :length] = old[:, :, row, :, :length].clone()

    def _spare_room(self, rows: int, positions: int) -> tuple[int, int]:
        """Rows and positions to hold in main memory, which costs nothing until it is written to: as many rows as there may be.

        A quarter more than the limit, for positions are rounded up.
        """
        positions = -(-positions // 64) * 64
        most = max(self._max_tokens + self._max_tokens // 4, -(-rows // 32) * 32 * positions)
        held_positions = max(positions, self._store.shape[4])
        if rows * held_positions > most:
            held_positions = positions
        return most // held_positions, held_positions

    def _tight_room(self, rows: int, positions: int) -> tuple[int, int]:
        """Rows and positions to hold on a card: a batch fills up row by row, and moving it takes time, but memory is scarce."""
        old_rows, old_positions = self._store.shape[2], self._store.shape[4]
        rows, positions = -(-rows // 4) * 4, -(-positions // 256) * 256
        held_rows, held_positions = max(rows, old_rows), max(positions, old_positions)
        spare_rows = max(rows, 2 * old_rows) if rows > old_rows else old_rows
        rooms = [(spare_rows, held_positions), (held_rows, held_positions)]
        return next((room for room in rooms if room[0] * room[1] <= self._max_tokens), (rows, positions))

    def clear(self) -> None:
        """Hold no rows. Main memory is kept, for an operating system may take long to give it out again."""
        self.lengths.clear()
        if self._memory.device.type != "cpu":
            self._memory = self._memory[:, :, :0].clone()
        self._store = self._room(0, 0)

    def _room(self, rows: int, positions: int) -> torch.Tensor:
        """The beginning of each layer's memory as so many rows and positions."""
        heads, head_size = self._store.shape[3], self._store.shape[5]
        numbers = rows * heads * positions * head_size
        return self._memory[:, :, :numbers].view(*self._memory.shape[:2], rows, heads, positions, head_size)

    def add_row(self, blocks: Sequence[torch.Tensor] = ()) -> int:
        """Append a row that starts with the tokens of `blocks` (from `read`) and return its number."""
        row = len(self.lengths)
        at = 0
        for block in blocks:
            self._store[:, :, row, :, at : at + block.shape[3]] = block
            at += block.shape[3]
        self.lengths.append(at)
        return row

    def copy_row(self, row: int) -> int:
        """Append a copy of a row and return its number."""
        length, copy = self.lengths[row], len(self.lengths)
        self._store[:, :, copy, :, :length] = self._store[:, :, row, :, :length]
        self.lengths.append(length)
        return copy

    def remove_row(self, row: int) -> None:
        """Remove a row; the last row takes its number."""
        last = len(self.lengths) - 1
        if row != last:
            length = self.lengths[last]
            self._store[:, :, row, :, :length] = self._store[:, :, last, :, :length]
            self.lengths[row] = length
        self.lengths.pop()

    def read(self, row: int, start: int, stop: int) -> torch.Tensor:
        """A copy of some positions of a row [2, layer, head, position, head size]."""
        return self._store[:, :, row, :, start:stop].clone()

    @torch.inference_mode()
    def forward(self, first_row: int, new_ids: Sequence[Sequence[int]], logits_to_keep: int) -> torch.Tensor:
        """Append tokens to consecutive rows and return the logits at their ends.

        Args:
            first_row: row of `new_ids[0]`; the others follow.
            new_ids: at least one token for each row; shorter ones are filled up on the left, and the filling is stored nowhere.
            logits_to_keep: for how many of the last positions logits are wanted.

        Returns:
            [rows, logits_to_keep, vocabulary]; entries of filling positions mean nothing.
        """
        width = max(map(len, new_ids))
        rows = range(first_row, first_row + len(new_ids))
        before = [self.lengths[row] for row in rows]
        totals = [length + len(ids) for length, ids in zip(before, new_ids, strict=True)]
        device = self._store.device
        padded = torch.tensor([[0] * (width - len(ids)) + list(ids) for ids in new_ids], device=device)
        ends = torch.tensor(totals, device=device)[:, None]
        positions = (ends - width + torch.arange(width, device=device)).clamp(min=0)
        visible = torch.arange(max(totals), device=device) <= positions[:, None, :, None]
        write = _Write(self._store, rows, before, totals, width)
        inputs: dict[str, Any] = {self._cache_name: write}
        output = self.model(
            input_ids=padded,
            attention_mask=visible,
            position_ids=positions,
            logits_to_keep=logits_to_keep,
            use_cache=True,
            **inputs,
        )
        for row, total in zip(rows, totals, strict=True):
            self.lengths[row] = total
        logits: torch.Tensor = output.logits
        return logits


def _zeros(shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Zeros; on a CPU the operating system finds memory for a page when it is first written, so room to spare costs nothing."""
    if device.type != "cpu" or 0 in shape:
        return torch.zeros(*shape, dtype=dtype, device=device)
    return torch.from_numpy(np.zeros(prod(shape) * dtype.itemsize, np.uint8)).view(dtype).view(*shape)


class _Write:
    """Stands where the model expects its cache: takes each layer's new keys and values, gives back all that the rows hold."""

    is_compileable = False

    def __init__(self, store: torch.Tensor, rows: range, before: list[int], totals: list[int], width: int) -> None:
        self._store = store
        self._rows = rows
        self._before = before
        self._totals = totals
        self._longest = max(totals)
        self._width = width
        self._row_index = torch.tensor(list(rows), device=store.device)
        self._last = torch.tensor(totals, device=store.device) - 1

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [rows, head, width, head size] of one layer in, those of all positions out."""
        both = self._store[:, layer]
        for kind, new in ((both[0], keys), (both[1], values)):
            if self._width == 1:
                kind[self._row_index, :, self._last] = new[:, :, 0]
                continue
            for place, row in enumerate(self._rows):
                start, stop = self._before[place], self._totals[place]
                kind[row, :, start:stop] = new[place, :, self._width - (stop - start) :]
        held = both[:, self._rows.start : self._rows.stop, :, : self._longest]
        return held[0], held[1]

    def get_seq_length(self, layer: int = 0) -> int:
        """Positions held before this pass, as far as a single number can say; masks and positions are given explicitly."""
        return self._longest - self._width
