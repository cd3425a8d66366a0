"""Reading corpora of every form, and saying which line is at fault."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from retrieval_factories import DATA

from searchparty.errors import UserError
from searchparty.retrieval.corpus import detect_format, read_corpus
from searchparty.retrieval.dialect import split_contents
from searchparty.retrieval.types import Passage


def read(path: Path, format: str | None = None) -> list[Passage]:
    return [passage for _, passage in read_corpus(path, format)]


def corpus_file(folder: Path, *lines: str | dict[str, object]) -> Path:
    path = folder / "corpus"
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), encoding="utf-8")
    return path


def test_json_lines_with_title_and_text_are_read(tmp_path: Path) -> None:
    path = corpus_file(tmp_path, {"id": "a", "title": "T", "text": "x\ny"}, {"id": 7, "text": "no title"})
    assert read(path) == [Passage("a", "T", "x\ny"), Passage("7", "", "no title")]


def test_wiki18_titles_are_read_with_and_without_quotes() -> None:
    passages = read(DATA / "wiki18.jsonl")
    assert [passage.title for passage in passages] == [
        "Hexhamshire",
        "Architechs",
        "Unsigned highway",
        "Ethel Winter",
        "Aloha ʻOe",
    ]
    assert passages[0].text.startswith("Hexhamshire remained a county until 1572")
    assert '""Aloha Oe""' in passages[4].text


@pytest.mark.parametrize(
    ("contents", "title", "text"),
    [
        ('"Royal Flash (film)"\nRoyal Flash', "Royal Flash (film)", "Royal Flash"),
        ("Absalon\nAbsalon was", "Absalon", "Absalon was"),
        ('"""Uncle Tom\'s Cabin"" Contrasted"\nas', '""Uncle Tom\'s Cabin"" Contrasted', "as"),
        ('"Heroes" (song)\nby', '"Heroes" (song)', "by"),
        ('"A"\nfirst\nsecond "B"', "A", 'first\nsecond "B"'),
        ('"\nlone quote', '"', "lone quote"),
        ("no title line", "", "no title line"),
        ('""\nno title', "", "no title"),
    ],
)
def test_contents_are_split_at_the_first_line_end_and_lose_one_pair_of_quotes(contents: str, title: str, text: str) -> None:
    assert split_contents(contents) == (title, text)


@given(title=st.text().filter(lambda title: "\n" not in title), text=st.text())
def test_contents_of_any_passage_are_split_back_into_title_and_text(title: str, text: str) -> None:
    assert split_contents(Passage("id", title, text).contents) == (title, text)


def test_quoted_contents_come_back_byte_for_byte() -> None:
    for line in (DATA / "wiki18.jsonl").read_text(encoding="utf-8").splitlines()[2:]:
        contents = json.loads(line)["contents"]
        assert Passage("id", *split_contents(contents)).contents == contents


def test_dpr_columns_are_read_in_the_order_of_the_header() -> None:
    passages = read(DATA / "dpr.tsv")
    assert len(passages) == 5
    assert (passages[0].id, passages[0].title) == ("4812", "Unsigned highway")
    assert '"sex hygiene film"' in passages[1].text and '""' not in passages[1].text


def test_dpr_without_a_header_is_read_when_the_format_is_named(tmp_path: Path) -> None:
    path = corpus_file(tmp_path, '1\t"Aaron ( or ; ""Ahärôn"")"\tAaron')
    assert read(path, "dpr") == [Passage("1", "Aaron", 'Aaron ( or ; "Ahärôn")')]


def test_a_quoted_dpr_cell_may_run_over_several_lines(tmp_path: Path) -> None:
    path = corpus_file(tmp_path, "id\ttext\ttitle", '1\t"first', 'second"\tA', "2\tx\tB")
    assert list(read_corpus(path)) == [(2, Passage("1", "A", "first\nsecond")), (4, Passage("2", "B", "x"))]


def test_title_text_rows_with_byte_order_mark_and_some_quoted_cells_are_read() -> None:
    passages = read(DATA / "title_text_with_bom.tsv")
    assert [passage.id for passage in passages] == ["0", "1", "2", "3", "4"]
    assert [passage.title for passage in passages][:2] == ["Professional Football League of Ukraine", "Lucy Mair"]
    assert passages[0].text.startswith('Professional Football League of Ukraine (Ukrainian: "Професіональна')


def test_kilt_rows_are_split_at_the_wide_gap_and_their_quotes_are_kept() -> None:
    passages = read(DATA / "kilt.tsv")
    assert {passage.title for passage in passages} == {"A"}
    assert passages[0].text.startswith('A A (named , plural "As", "A\'s", "a"s')


def test_a_json_array_without_ids_is_numbered_from_zero() -> None:
    passages = read(DATA / "hipporag.json")
    assert passages[0].title == "Teutberga"
    assert [passage.id for passage in passages] == ["0", "1", "2"]


def test_compression_is_found_by_content_and_not_by_name(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(gzip.compress((DATA / "wiki18.jsonl").read_bytes()))
    assert read(path) == read(DATA / "wiki18.jsonl")


def test_a_line_end_in_a_title_becomes_a_space(tmp_path: Path) -> None:
    assert read(corpus_file(tmp_path, {"id": "a", "title": "two\r\nlines", "text": "x"})) == [Passage("a", "two lines", "x")]


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "q", "question": "who?", "golden_answers": ["me"]}',
        '{"id": "q", "input": "who?", "output": []}',
        "who sings it\t['Stephen Stills']",
        "id\tsubj\tquestion\tpossible_answers",
    ],
)
def test_a_file_of_questions_is_named_as_such(tmp_path: Path, line: str) -> None:
    with pytest.raises(UserError, match=r"corpus:1: this is a file of questions"):
        read(corpus_file(tmp_path, line))


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("{broken", "not valid JSON"),
        ('"a string"', "an object is needed"),
        ('{"title": "T", "text": "x"}', "no 'id'"),
        ('{"id": "a", "title": "T"}', "neither 'text' nor 'contents'"),
        ('{"id": "a", "text": 3}', "must be strings"),
        ('{"id": "a", "contents": ["x"]}', "must be a string"),
        ('{"id": true, "text": "x"}', "'id' must be"),
        ('{"id": "a", "text": "\\ud800"}', "not valid JSON"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, fault: str) -> None:
    good = [{"id": str(number), "text": "x"} for number in range(16)]
    with pytest.raises(UserError, match=rf"corpus:17: .*{fault}"):
        read(corpus_file(tmp_path, *good, line))


@pytest.mark.parametrize("row", ["1\tonly two", '1\t"open quote\tT', '1\t"Weird Al" sings\tT'])
def test_a_malformed_tsv_row_is_named(tmp_path: Path, row: str) -> None:
    with pytest.raises(UserError, match=r"corpus:3: "):
        read(corpus_file(tmp_path, "id\ttext\ttitle", "0\tx\tT", row))


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"corpus:1: .*--format \(jsonl, json, dpr"):
        detect_format(corpus_file(tmp_path, "Question,Answer"))
    with pytest.raises(UserError, match="unknown corpus format 'xml'"):
        read(corpus_file(tmp_path, "x"), "xml")


@pytest.mark.parametrize(
    ("content", "fault"),
    [(b"", "empty"), (b"\n\n", "blank lines"), (b"PAR1\x15\x04", "Parquet"), (b"\xff\xfe{}", "not UTF-8")],
)
def test_a_file_that_cannot_be_a_corpus_is_refused(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / "corpus"
    path.write_bytes(content)
    with pytest.raises(UserError, match=fault):
        read(path)


def test_a_compressed_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "corpus.gz"
    path.write_bytes(gzip.compress((DATA / "passages.jsonl").read_bytes())[:20_000])
    with pytest.raises(UserError, match="cut short"):
        read(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read(tmp_path / "nowhere.jsonl")
