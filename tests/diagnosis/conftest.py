"""A small world whose experts lose the evidence where a test wants it lost."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "world"))

from world_factories import small_world, written_index

from searchparty.retrieval.bm25 import BM25Index
from searchparty.world.types import World


@pytest.fixture(scope="session")
def world() -> World:
    """120 entities and 40 test questions, with few near misses so that a perfect expert finds everything."""
    return small_world(entities=120, train=40, dev=6, test=40, distractors=0.2)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the world and its index lie, as folders of these names."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def index(world: World, home: Path) -> BM25Index:
    """BM25 over its passages."""
    return written_index(world, home)
