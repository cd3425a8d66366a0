"""What sloppy readers of these formats get wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from question_files import DATA, json_lines

from searchparty.questions.reading import load_questions, read_questions
from searchparty.questions.types import Question


def only(path: Path, **options: Any) -> Question:
    (question,) = read_questions(path, **options)
    return question


def test_a_list_of_answers_inside_the_reward_is_not_joined_into_one() -> None:
    question = read_questions(DATA / "agentic_rag_nq_test.sample.parquet")[1]
    assert question.golden_answers == ("Bobby Scott", "Bob Russell")


def test_a_single_answer_with_commas_is_not_split() -> None:
    answers = {answer for q in read_questions(DATA / "agentic_rag_musique_test.sample.parquet") for answer in q.golden_answers}
    assert any(", " in answer for answer in answers)
    assert all(len(q.golden_answers) == 1 for q in read_questions(DATA / "agentic_rag_musique_test.sample.parquet"))


def test_dpr_cells_lose_the_quoting_of_the_file_but_not_that_of_the_source() -> None:
    texts = [question.text for question in read_questions(DATA / "triviaqa_dpr_test.sample.tsv")]
    assert '"How many different animal shapes are there in the ""Animal Crackers"" cookie zoo?"' in texts


def test_a_dpr_answer_list_with_a_quote_in_an_alias_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trivia.tsv"
    path.write_bytes(b'In which decade?\t"[\'Thirties\', ""\'30s"", ""1930\'s""]"\r\n')
    assert only(path).golden_answers == ("Thirties", "'30s", "1930's")


def test_bamboogles_answer_with_a_line_end_stays_one_record_and_the_rows_after_it_follow() -> None:
    questions = read_questions(DATA / "bamboogle.csv")
    assert questions[74].golden_answers == ("George VI\n",)
    assert questions[75].text == "In 2016, who was the host of the longest running talk show?"


def test_flashrags_doubled_quotes_are_kept_as_the_source_has_them() -> None:
    assert read_questions(DATA / "flashrag_triviaqa_test.sample.jsonl")[0].text.startswith('"Who wrote ""A cauliflower')


def test_an_html_entity_in_a_title_is_data_and_a_title_that_supports_twice_is_named_once(tmp_path: Path) -> None:
    facts = [["Etiquette &amp; Espionage", 0], ["Etiquette &amp; Espionage", 1], ["Animorphs", 0]]
    path = tmp_path / "hotpot.json"
    path.write_text(json.dumps([{"_id": "5a", "question": "q?", "answer": "a", "supporting_facts": facts, "context": []}]))
    assert only(path).supporting_titles == ("Etiquette &amp; Espionage", "Animorphs")


def test_a_record_that_stands_twice_in_a_published_file_is_taken_once_and_reported() -> None:
    loaded = load_questions(DATA / "hotpotqa_dev_distractor.sample.json")
    (skipped,) = loaded.skipped
    assert skipped.where.endswith(": record 4")
    assert "record 2" in skipped.reason


def test_passages_that_come_with_a_question_are_left_out_and_other_fields_kept() -> None:
    musique = read_questions(DATA / "musique_ans_v1.0_dev.sample.jsonl")[0]
    assert musique.extra.keys() == {"question_decomposition", "answerable"}
    hotpotqa = read_questions(DATA / "hotpotqa_dev_distractor.sample.json")[0]
    assert hotpotqa.extra == {"level": "hard"}


def test_efficientqas_later_judgements_are_no_golden_answers() -> None:
    question = read_questions(DATA / "nq_efficientqa_test.sample.jsonl")[0]
    assert "six geese a-laying" not in question.golden_answers
    assert question.extra["def_correct_predictions"] == ["six geese a-laying"]


def test_musiques_unanswerable_twin_has_its_own_key_and_no_golden_answers(tmp_path: Path) -> None:
    shared = {"id": "3hop1__1_2_3", "question": "q?", "answer": "x", "answer_aliases": ["y"], "question_decomposition": []}
    support = [{"idx": 0, "title": "T", "paragraph_text": "", "is_supporting": True}]
    path = json_lines(
        tmp_path / "full.jsonl",
        {**shared, "answerable": True, "paragraphs": support},
        {**shared, "answerable": False, "paragraphs": []},
    )
    answerable, twin = read_questions(path)
    assert answerable.golden_answers == ("x", "y")
    assert (answerable.hops, answerable.type, answerable.supporting_titles) == (3, "3hop1", ("T",))
    assert (twin.id, twin.official_id) == ("3hop1__1_2_3__unanswerable", "3hop1__1_2_3")
    assert twin.golden_answers == ()
    assert twin.extra["answer"] == "x"


def test_hotpotqas_test_files_without_answers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "hotpot.json"
    path.write_text(json.dumps([{"_id": "5a", "question": "q?", "context": [["T", ["s"]]]}]))
    question = only(path)
    assert (question.golden_answers, question.supporting_titles, question.dataset) == ((), (), "hotpotqa")


def test_2wiki_with_facts_as_json_text_is_read(tmp_path: Path) -> None:
    facts = json.dumps([["A", 0], ["B", 1], ["A", 2]])
    path = json_lines(
        tmp_path / "x.jsonl",
        {"_id": "1", "question": "q?", "answer": "a", "type": "inference", "evidences": "[]", "supporting_facts": facts},
    )
    assert only(path).supporting_titles == ("A", "B")


ANNOTATIONS = [
    {"type": "singleAnswer", "answer": ["1950", "1951"]},
    {
        "type": "multipleQAs",
        "qaPairs": [{"question": "when a?", "answer": ["1950"]}, {"question": "when b?", "answer": ["2000"]}],
    },
]
ANNOTATIONS_AS_COLUMNS = {
    "type": ["singleAnswer", "multipleQAs"],
    "answer": [["1950", "1951"], []],
    "qaPairs": [{"question": [], "answer": []}, {"question": ["when a?", "when b?"], "answer": [["1950"], ["2000"]]}],
}


@pytest.mark.parametrize("annotations", [ANNOTATIONS, ANNOTATIONS_AS_COLUMNS], ids=["official", "hugging face"])
def test_ambigqa_accepts_the_answers_to_every_reading(annotations: object, tmp_path: Path) -> None:
    path = tmp_path / "dev_light.json"
    path.write_text(json.dumps([{"id": "-4469503464110108318", "question": "when?", "annotations": annotations}]))
    loaded = load_questions(path)
    assert loaded.format == "ambigqa"
    (question,) = loaded.questions
    assert question.golden_answers == ("1950", "1951", "2000")
    assert (question.id, question.type, question.dataset) == ("-4469503464110108318", "multipleQAs", "ambigqa")


def test_kilt_outputs_may_hold_answers_provenance_both_or_be_missing(tmp_path: Path) -> None:
    page = {"title": "P", "wikipedia_id": "1"}
    path = json_lines(
        tmp_path / "kilt.jsonl",
        {"id": 5, "input": "q?", "output": [{"answer": "a"}, {"provenance": [page]}, {"answer": "a", "provenance": [page]}]},
        {"id": "2hop__1_2", "input": "r?"},
    )
    first, second = read_questions(path)
    assert (first.id, first.golden_answers, first.supporting_titles) == ("5", ("a",), ("P",))
    assert (second.dataset, second.hops, second.golden_answers) == ("musique", 2, ())


def test_dpr_training_json_names_its_dataset_and_its_gold_titles(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    record = {
        "dataset": "nq_train_psgs_w100",
        "question": "q",
        "answers": ["a"],
        "positive_ctxs": [{"title": "T", "text": "t"}],
    }
    path.write_text(json.dumps([record | {"negative_ctxs": [], "hard_negative_ctxs": [{"title": "N", "text": "n"}]}]))
    question = only(path)
    assert (question.id, question.dataset, question.supporting_titles, question.extra) == ("nq_0", "nq", ("T",), {})


def test_retrieved_contexts_are_no_evidence_because_they_hold_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "retrieved.json"
    context = {"id": "1", "title": "T", "text": "a", "score": "8.1", "has_answer": True}
    path.write_text(json.dumps([{"question": "q", "answers": ["a"], "ctxs": [context]}]))
    assert only(path).supporting_titles == ()


def test_beir_topics_keep_their_quotes_and_queries_jsonl_is_read_too(tmp_path: Path) -> None:
    topics = tmp_path / "topics.tsv"
    topics.write_text('t1\t"Big Stone Gap" is based where?\nt2\twhat is "it\n', encoding="utf-8")
    assert [question.text for question in read_questions(topics)] == ['"Big Stone Gap" is based where?', 'what is "it']
    metadata = {"answer": "New York", "supporting_facts": [["Big Stone Gap (film)", 0]]}
    queries = json_lines(tmp_path / "queries.jsonl", {"_id": "q1", "text": "where?", "metadata": metadata})
    assert only(queries) == Question("q1", "where?", ("New York",), "beir", supporting_titles=("Big Stone Gap (film)",))


def test_a_dataset_is_named_by_the_path_only_where_the_data_do_not(tmp_path: Path) -> None:
    record = {"id": "test_0", "question": "q?", "golden_answers": ["a"]}
    (tmp_path / "nq").mkdir()
    assert only(json_lines(tmp_path / "nq" / "test.jsonl", record)).dataset == "nq"
    assert only(json_lines(tmp_path / "test.jsonl", record)).dataset == "flashrag"
    stated = {**record, "dataset": "ours"}
    assert only(json_lines(tmp_path / "nq" / "ours.jsonl", stated)).dataset == "ours"
    both = json_lines(tmp_path / "nq_and_hotpotqa.jsonl", record)
    assert only(both).dataset == "flashrag"
