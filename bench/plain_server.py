"""The server that `retriever serve` is measured against: the shape of Search-R1's retrieval server over the same index.

A pydantic model, a plain `def` endpoint in FastAPI's thread pool, dictionaries that FastAPI turns into JSON, and uvicorn as
`pip install fastapi uvicorn` gives it (asyncio, h11).

    python bench/plain_server.py INDEX PORT
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from searchparty.retrieval.bm25 import BM25Index


class QueryRequest(BaseModel):
    """Search-R1's request."""

    queries: list[str]
    topk: int | None = None
    return_scores: bool = False


def application(index: BM25Index) -> FastAPI:
    """The application with its one endpoint."""
    app = FastAPI()

    @app.post("/retrieve")
    def retrieve(request: QueryRequest) -> dict[str, Any]:
        found = index.search(request.queries, request.topk or 3)
        documents = [[({"id": hit.passage.id, "contents": hit.passage.contents}, hit.score) for hit in hits] for hits in found]
        if request.return_scores:
            return {"result": [[{"document": document, "score": score} for document, score in hits] for hits in documents]}
        return {"result": [[document for document, _ in hits] for hits in documents]}

    return app


if __name__ == "__main__":
    app = application(BM25Index(Path(sys.argv[1])))
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), loop="asyncio", http="h11", log_level="warning", access_log=False)
