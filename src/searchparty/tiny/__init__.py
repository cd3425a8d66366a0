"""The tiny policy: a very small transformer that plays every role in the generated world, well-formed and far from perfectly.

It is shipped inside the package (`--model tiny`) as the start of training on a laptop; `make` makes it again from nothing.
Knows the generated world and how to imitate; nothing of rewards.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def shipped_model() -> Path:
    """The model folder inside the package."""
    return Path(str(resources.files("searchparty.tiny") / "model"))
