"""A small world with its index, made once, and one thread, so that small runs are quick and equal."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from searchparty.retrieval.bm25 import BM25Index
from searchparty.world import WorldParameters, make_world, write_world
from searchparty.world.storing import CORPUS_FILE

sys.path.insert(0, str(Path(__file__).parent))
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of a small world and `index`."""
    folder = tmp_path_factory.mktemp("worlds") / "world"
    write_world(make_world(WorldParameters(seed=3, entities=80, train=24, dev=6, test=8)), folder)
    BM25Index.build(folder / CORPUS_FILE, folder / "index")
    return folder
