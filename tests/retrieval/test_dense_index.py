"""A dense index: hits against brute force, builds that go on after an interruption, and what cannot be opened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from dense_factories import HashingEncoder, build_dense
from numpy.typing import NDArray
from retrieval_factories import DATA, ids, passages_of, write_corpus

from searchparty.errors import UserError
from searchparty.retrieval.corpus import read_corpus
from searchparty.retrieval.dense.build import DenseOptions
from searchparty.retrieval.dense.index import DenseIndex
from searchparty.retrieval.dense.vectors import STORAGES, Storage
from searchparty.retrieval.types import Passage

QUERIES = (DATA / "queries.txt").read_text(encoding="utf-8").splitlines()
PASSAGES = [passage for _, passage in read_corpus(DATA / "passages.jsonl")]
ANIMALS = passages_of("cat", "dog", "cat dog", "fish", "bird", "cat")


class UnusableEncoder(HashingEncoder):
    """Spoils its vectors from some passage on."""

    def __init__(self, spoil: float, dimension_given: int = 32) -> None:
        super().__init__()
        self._spoil = spoil
        self._dimension_given = dimension_given

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = super().encode_passages(texts)[:, : self._dimension_given]
        vectors[-1, 0] = self._spoil
        return vectors


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("storage", STORAGES)
def test_hits_over_real_passages_are_those_of_brute_force(tmp_path: Path, storage: Storage) -> None:
    encoder = HashingEncoder(dimension=64)
    index = DenseIndex.build(DATA / "passages.jsonl", tmp_path / "index", encoder, options=DenseOptions(storage))
    passages_PD = encoder.encode_passages([passage.contents for passage in PASSAGES]).astype(np.float64)
    scores_QP = encoder.encode_queries(QUERIES) @ passages_PD.T
    for hits, scores_P in zip(index.search(QUERIES, 5), scores_QP, strict=True):
        best = np.sort(scores_P)[::-1][:5]
        np.testing.assert_allclose([hit.score for hit in hits], best, atol=0.02 if storage == "int8" else 2e-3)
        assert [hit.rank for hit in hits] == [1, 2, 3, 4, 5]


def test_equal_passages_are_ranked_by_corpus_order(tmp_path: Path) -> None:
    [hits] = build_dense(tmp_path, ANIMALS).search(["cat"], 3)
    assert ids(hits) == ["p0", "p5", "p2"]
    assert hits[0].score == hits[1].score


def test_more_hits_than_passages_are_all_passages(tmp_path: Path) -> None:
    [hits] = build_dense(tmp_path, ANIMALS).search(["dog"], 1000)
    assert len(hits) == len(ANIMALS)


@pytest.mark.parametrize("query", ["", " ", "\n\t", "\u3000", '"'])
def test_a_query_without_content_has_no_hits_and_spoils_no_other(tmp_path: Path, query: str) -> None:
    empty, hits = build_dense(tmp_path, ANIMALS).search([query, "fish"], 1)
    assert not empty
    assert ids(hits) == ["p3"]


@pytest.mark.parametrize("query", ["cat " * 10_000, "cat\x00\x1b[31m", "\u202ecat", "قطة cat", "cat\ud7ff"])
def test_odd_queries_are_answered(tmp_path: Path, query: str) -> None:
    assert len(build_dense(tmp_path, ANIMALS).search([query], 2)[0]) == 2


@pytest.mark.parametrize("k", [0, -1])
def test_impossible_numbers_of_hits_are_refused(tmp_path: Path, k: int) -> None:
    with pytest.raises(ValueError, match="k must be at least 1"):
        build_dense(tmp_path, ANIMALS).search(["cat"], k)


def test_no_queries_give_no_answers(tmp_path: Path) -> None:
    assert build_dense(tmp_path, ANIMALS).search([], 3) == []


def test_several_threads_get_the_answers_of_one(tmp_path: Path) -> None:
    index = DenseIndex.build(DATA / "passages.jsonl", tmp_path / "index", HashingEncoder())
    alone = [index.search([query], 3) for query in QUERIES]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda query: index.search([query], 3), QUERIES)) == alone


def test_an_index_opens_again_and_says_what_it_was_built_with(tmp_path: Path) -> None:
    built = build_dense(tmp_path, ANIMALS, storage="int8")
    opened = DenseIndex(tmp_path / "index", HashingEncoder())
    assert opened.search(["bird cat"], 4) == built.search(["bird cat"], 4)
    assert opened.manifest.settings == {
        "model": "hashing-plain",
        "model_digest": "sha256:hashing-plain",
        "profile": "hashing",
        "storage": "int8",
        "search": "exact",
    }
    assert opened.manifest.counts["dimension"] == 32
    assert opened.identity.startswith("dense(model_digest=sha256:hashing-plain,profile=hashing,search=exact,storage=int8)@")


@pytest.mark.parametrize(
    ("encoder", "fault"),
    [
        (HashingEncoder(profile="other"), "built with profile 'hashing', this program uses 'other'"),
        (HashingEncoder(dimension=16), "have 32 numbers, those of hashing-plain have 16"),
        (
            HashingEncoder(seed="x"),
            r"passage 'p0' \(row 0\) is not what hashing-x makes of it; use hashing-plain with",
        ),
        (HashingEncoder(scaled=False), "is not what hashing-plain makes of it"),
    ],
)
def test_another_encoder_is_refused(tmp_path: Path, encoder: HashingEncoder, fault: str) -> None:
    build_dense(tmp_path, ANIMALS)
    with pytest.raises(UserError, match=fault):
        DenseIndex(tmp_path / "index", encoder)


def test_vectors_in_another_order_are_refused(tmp_path: Path) -> None:
    build_dense(tmp_path, passages_of("cat", "dog", "fish", "bird"))
    path = tmp_path / "index" / "vectors.bin"
    path.write_bytes(np.fromfile(path, np.float16).reshape(4, 32)[::-1].tobytes())
    with pytest.raises(UserError, match="the vectors may be in another order"):
        DenseIndex(tmp_path / "index", HashingEncoder())


def test_vectors_of_another_number_are_refused(tmp_path: Path) -> None:
    build_dense(tmp_path, ANIMALS)
    manifest, vectors = tmp_path / "index" / "index.json", tmp_path / "index" / "vectors.bin"
    vectors.write_bytes(vectors.read_bytes()[:-64])
    with pytest.raises(UserError, match=r"vectors\.bin has 320 bytes where 384 were written"):
        DenseIndex(tmp_path / "index", HashingEncoder())
    manifest.write_text(manifest.read_text().replace('"vectors.bin": 384', '"vectors.bin": 320'))
    with pytest.raises(UserError, match=r"vectors\.bin: has 320 bytes, 384 are needed for 6 x 32 numbers of float16"):
        DenseIndex(tmp_path / "index", HashingEncoder())


@pytest.mark.parametrize("spoil", [float("nan"), float("inf")])
def test_an_encoder_that_gives_no_numbers_is_refused_and_nothing_is_left(tmp_path: Path, spoil: float) -> None:
    with pytest.raises(UserError, match=r"hashing-plain: the vector of text 5 holds NaN or infinity \(1 of 6 texts\)"):
        build_dense(tmp_path, ANIMALS, UnusableEncoder(spoil))
    assert not (tmp_path / "index").exists()


def test_an_encoder_that_breaks_its_word_about_the_dimension_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gave vectors of shape \[6, 31\] for 6 texts, \[6, 32\] is needed"):
        build_dense(tmp_path, ANIMALS, UnusableEncoder(0.0, dimension_given=31))


def test_numbers_that_float16_cannot_hold_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="more than float16 can hold; store float32 or int8"):
        build_dense(tmp_path, ANIMALS, UnusableEncoder(1e6))


@pytest.mark.parametrize("storage", STORAGES)
def test_an_interrupted_build_goes_on_and_gives_the_same_files(tmp_path: Path, storage: Storage) -> None:
    whole = build_dense(tmp_path / "whole", PASSAGES[:50], storage=storage)
    encoder = HashingEncoder()

    def interrupt(stage: str, done: int, total: int | None) -> None:
        if stage == "encoding passages" and done == 24:
            raise Interrupted

    with pytest.raises(Interrupted):
        build_dense(tmp_path / "parts", PASSAGES[:50], encoder, storage=storage, progress=interrupt, shard_passages=8)
    assert not (tmp_path / "parts" / "index").exists()
    with (tmp_path / "parts" / ".index.encoding" / "vectors.bin").open("ab") as stream:
        stream.write(b"a shard that was cut short")
    encoder.encoded.clear()
    parts = build_dense(tmp_path / "parts", PASSAGES[:50], encoder, storage=storage, shard_passages=8)
    assert sum(encoder.encoded) == 26 + 3
    for name in whole.manifest.files:
        assert (tmp_path / "parts" / "index" / name).read_bytes() == (tmp_path / "whole" / "index" / name).read_bytes()
    assert parts.identity == whole.identity
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == ["corpus.jsonl", "index"]


@pytest.mark.parametrize(
    ("passages", "encoder", "storage", "fault"),
    [
        (PASSAGES[:49], HashingEncoder(), "float16", "passages_sha256"),
        (PASSAGES[:50], HashingEncoder(seed="x"), "float16", "model 'hashing-plain' where 'hashing-x'"),
        (PASSAGES[:50], HashingEncoder(profile="y"), "float16", "profile 'hashing' where 'y'"),
        (PASSAGES[:50], HashingEncoder(), "int8", "storage 'float16' where 'int8'"),
    ],
)
def test_unfinished_vectors_of_another_kind_are_not_used(
    tmp_path: Path, passages: list[Passage], encoder: HashingEncoder, storage: Storage, fault: str
) -> None:
    def interrupt(stage: str, done: int, total: int | None) -> None:
        if done == 8:
            raise Interrupted

    with pytest.raises(Interrupted):
        build_dense(tmp_path, PASSAGES[:50], progress=interrupt, shard_passages=8)
    with pytest.raises(UserError, match=rf"\.index\.encoding: holds unfinished vectors with {fault}.*delete this folder"):
        build_dense(tmp_path, passages, encoder, storage=storage)


def test_a_build_that_is_killed_goes_on(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from dense_factories import HashingEncoder\n"
        "from searchparty.retrieval.dense.build import DenseOptions\n"
        "from searchparty.retrieval.dense.index import DenseIndex\n"
        "def die(stage, done, total):\n"
        "    if done == 40: os.kill(os.getpid(), signal.SIGKILL)\n"
        "DenseIndex.build(Path(sys.argv[1]), Path(sys.argv[2]), HashingEncoder(), progress=die,\n"
        "                 options=DenseOptions(shard_passages=20))\n"
    )
    corpus = write_corpus(tmp_path / "corpus.jsonl", PASSAGES[:50])
    paths = [str(Path(__file__).parent), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    ended = subprocess.run([sys.executable, "-c", script, str(corpus), str(tmp_path / "index")], check=False, env=environment)
    assert ended.returncode == -signal.SIGKILL
    assert json.loads((tmp_path / ".index.encoding" / "encoding.json").read_text())["vectors"] == 40
    encoder = HashingEncoder()
    assert len(DenseIndex.build(corpus, tmp_path / "index", encoder)) == 50
    assert sum(encoder.encoded) == 10 + 3


def test_vectors_outlive_a_failure_after_the_last_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = HashingEncoder()
    with monkeypatch.context() as patch:
        patch.setattr(
            "searchparty.retrieval.dense.build.save_manifest", lambda *_: (_ for _ in ()).throw(OSError(28, "disk full"))
        )
        with pytest.raises(UserError, match="disk full"):
            build_dense(tmp_path, PASSAGES[:50], encoder)
    encoder.encoded.clear()
    build_dense(tmp_path, PASSAGES[:50], encoder)
    assert sum(encoder.encoded) == 3
