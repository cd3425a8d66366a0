"""A trained model as a folder that transformers, vLLM or `--model FOLDER` can load."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from searchparty.learning.lora import merged_weights
from searchparty.learning.tensor_files import write_tensors

BESIDE_WEIGHTS = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
    "generation_config.json",
)  # fmt: skip


def export_model(model: Any, folder: Path, source: Path | None = None) -> None:
    """Write weights (additions of LoRA worked in) and configuration into `folder`, which exists.

    Args:
        model: a causal language model of transformers.
        source: the folder that the model came from; its tokenizer's files are copied.

    Raises:
        OSError: it cannot be written.
    """
    weights = {name: tensor.contiguous() for name, tensor in merged_weights(model)}
    write_tensors(weights, folder / "model.safetensors", metadata={"format": "pt"})
    model.config.save_pretrained(folder)
    for name in BESIDE_WEIGHTS:
        if source is not None and (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
