"""Makes `world_factories` importable for the tests of this folder, and shares one world and its index among them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from world_factories import small_world, written_index

from searchparty.retrieval.bm25 import BM25Index
from searchparty.world.types import World


@pytest.fixture(scope="session")
def world() -> World:
    """300 entities, 120 test questions of one to four hops, the default difficulty."""
    return small_world(entities=300, train=300, dev=30, test=120)


@pytest.fixture(scope="session")
def index(world: World, tmp_path_factory: pytest.TempPathFactory) -> BM25Index:
    """BM25 over that world's passages."""
    return written_index(world, tmp_path_factory.mktemp("world"))
