"""The bundled sample is complete: 200 questions whose evidence is in its corpus."""

from __future__ import annotations

import json
from collections import Counter

from searchparty.questions import read_questions
from searchparty.questions.overlap import find_overlap, fold
from searchparty.questions.sample import sample_attribution, sample_corpus, sample_questions

QUESTIONS = read_questions(sample_questions())
PASSAGES = [json.loads(line) for line in sample_corpus().read_text(encoding="utf-8").splitlines()]


def test_four_sets_give_fifty_questions_each() -> None:
    assert Counter(question.dataset for question in QUESTIONS) == {
        "hotpotqa": 50,
        "musique": 50,
        "2wikimultihopqa": 50,
        "nq": 50,
    }


def test_all_evidence_is_in_the_corpus_under_the_titles_that_the_questions_name() -> None:
    titles = {passage["id"]: passage["title"] for passage in PASSAGES}
    for question in QUESTIONS:
        assert question.supporting_ids
        named = {fold(title) for title in question.supporting_titles}
        assert all(fold(titles[passage_id]) in named for passage_id in question.supporting_ids)


def test_passages_have_unique_ids_and_some_text_and_distractors_outnumber_evidence() -> None:
    evidence = {passage_id for question in QUESTIONS for passage_id in question.supporting_ids}
    assert len({passage["id"] for passage in PASSAGES}) == len(PASSAGES) == 2000
    assert all(passage.keys() == {"id", "title", "text"} and passage["text"].strip() for passage in PASSAGES)
    assert len(PASSAGES) > 4 * len(evidence)


def test_no_golden_answer_normalises_to_nothing_and_no_question_stands_twice() -> None:
    assert all(question.golden_answers and all(map(fold, question.golden_answers)) for question in QUESTIONS)
    assert find_overlap(QUESTIONS).groups == ()


def test_the_attribution_names_every_set_and_its_licence() -> None:
    text = sample_attribution().read_text(encoding="utf-8")
    for word in ("HotpotQA", "MuSiQue", "2WikiMultiHopQA", "NQ-open", "Wikipedia", "CC BY-SA 4.0", "CC BY 4.0", "Apache-2.0"):
        assert word in text


def test_the_sample_stays_small() -> None:
    assert sum(path.stat().st_size for path in (sample_questions(), sample_corpus())) < 1_500_000
