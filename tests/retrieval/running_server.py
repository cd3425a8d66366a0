"""A retrieval server in a thread of the test, on a free loopback port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from running_http import running_application
from searchparty.retrieval.server import RetrievalServer
from searchparty.retrieval.types import Retriever


@contextmanager
def running(retriever: Retriever, passages: int | None, default_k: int = 3, **options: Any) -> Iterator[str]:
    """The address of a server that runs in a thread."""
    with running_application(RetrievalServer(retriever, passages, default_k, **options)) as address:
        yield address
