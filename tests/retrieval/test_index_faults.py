"""An index folder is complete or is none, and one that cannot be used says what to do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from retrieval_factories import DATA, build, passages_of, write_corpus

from searchparty.errors import UserError
from searchparty.retrieval.bm25 import BM25Index
from searchparty.retrieval.opening import open_index


def built(folder: Path) -> Path:
    build(folder, passages_of("cat", "dog"))
    return folder / "index"


def change_manifest(index: Path, **changes: object) -> None:
    path = index / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_missing_folder_is_refused_with_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such index folder; make it with: searchparty index build CORPUS -o"):
        open_index(tmp_path / "nowhere")


def test_a_folder_that_is_no_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not an index \(index.json is missing\)"):
        open_index(tmp_path)


def test_an_index_of_another_version_is_refused(tmp_path: Path) -> None:
    index = built(tmp_path)
    change_manifest(index, format=999)
    with pytest.raises(UserError, match="version 999, this program reads version 1; build it again"):
        open_index(index)


def test_every_file_of_an_index_is_missed_when_it_is_gone_or_cut_short(tmp_path: Path) -> None:
    index = built(tmp_path)
    names = [path.name for path in index.iterdir() if path.name != "index.json"]
    assert len(names) == 10
    for name in names:
        content = (index / name).read_bytes()
        (index / name).write_bytes(content[:-1])
        with pytest.raises(
            UserError, match=rf"{name} has {len(content) - 1} bytes where {len(content)} were written; build it again"
        ):
            open_index(index)
        (index / name).unlink()
        with pytest.raises(UserError, match=f"{name} is missing; build it again"):
            open_index(index)
        (index / name).write_bytes(content)
    assert len(open_index(index)) == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"format": 1}', b"\xff"])
def test_a_damaged_manifest_is_refused(tmp_path: Path, content: bytes) -> None:
    index = built(tmp_path)
    (index / "index.json").write_bytes(content)
    with pytest.raises(UserError, match=r"index\.json is damaged"):
        open_index(index)


def test_an_index_built_with_another_analyser_is_refused(tmp_path: Path) -> None:
    index = built(tmp_path)
    change_manifest(index, settings={**open_index(index).manifest.settings, "stemmer": "none"})
    with pytest.raises(UserError, match="built with stemmer 'none', this program uses 'porter'; build it again"):
        open_index(index)


def test_an_index_for_an_unknown_retriever_is_refused(tmp_path: Path) -> None:
    index = built(tmp_path)
    change_manifest(index, retriever="telepathy")
    with pytest.raises(UserError, match="'telepathy'"):
        open_index(index)


def test_an_existing_index_is_only_replaced_when_asked(tmp_path: Path) -> None:
    index = built(tmp_path)
    corpus = write_corpus(tmp_path / "other.jsonl", passages_of("fish"))
    with pytest.raises(UserError, match="already exists; choose another folder or add --overwrite"):
        BM25Index.build(corpus, index)
    assert len(open_index(index)) == 2
    assert len(BM25Index.build(corpus, index, overwrite=True)) == 1


def test_a_failed_rebuild_leaves_the_old_index(tmp_path: Path) -> None:
    index = built(tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "text": "x"}\n{')
    with pytest.raises(UserError, match=r"bad.jsonl:2"):
        BM25Index.build(tmp_path / "bad.jsonl", index, overwrite=True)
    assert len(open_index(index)) == 2


def test_a_folder_with_other_things_in_it_is_never_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(UserError, match="precious"):
            BM25Index.build(DATA / "passages.jsonl", folder, overwrite=overwrite)
    assert (folder / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    "lines", ["", "\n", '{"id": "a", "text": "x"}\nno\n', '{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}\n']
)
def test_a_failed_build_leaves_nothing_behind(tmp_path: Path, lines: str) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(lines)
    with pytest.raises(UserError, match=r"corpus\.jsonl"):
        BM25Index.build(corpus, tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.jsonl"]


def test_a_corpus_without_any_word_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no passage holds a word"):
        build(tmp_path, passages_of("the", "???"))


@pytest.mark.parametrize("settings", [{"k1": -1.0}, {"b": 1.5}, {"k1": float("nan")}])
def test_impossible_settings_are_refused(tmp_path: Path, settings: dict[str, float]) -> None:
    with pytest.raises(UserError, match="k1 must be at least 0"):
        build(tmp_path, passages_of("cat"), **settings)


def test_a_build_interrupted_by_an_exception_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(stage: str, done: int, total: int | None) -> None:
        if stage == "counting words":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BM25Index.build(DATA / "passages.jsonl", tmp_path / "index", progress=interrupt)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stage", ["reading passages", "counting words", "weighing words"])
def test_a_build_that_is_killed_leaves_no_index_that_opens(tmp_path: Path, stage: str) -> None:
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from searchparty.retrieval.bm25 import BM25Index\n"
        "def die(stage, done, total):\n"
        "    if stage == sys.argv[3]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "BM25Index.build(Path(sys.argv[1]), Path(sys.argv[2]), progress=die)\n"
    )
    target = tmp_path / "index"
    ended = subprocess.run([sys.executable, "-c", script, str(DATA / "passages.jsonl"), str(target), stage], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not target.exists()
    for left_over in tmp_path.iterdir():
        with pytest.raises(UserError):
            open_index(left_over)
    assert len(BM25Index.build(DATA / "passages.jsonl", target)) == 220


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(UserError, match="cannot be written"):
            BM25Index.build(DATA / "passages.jsonl", tmp_path / "index")
    finally:
        tmp_path.chmod(0o700)
