"""What `index evaluate` counts, with cases worked by hand."""

import json
from collections.abc import Sequence
from math import log2
from pathlib import Path

import pytest

from searchparty.cli.main import main
from searchparty.errors import UserError
from searchparty.evaluation.retrieval_scores import estimate_scores, score_retriever
from searchparty.questions.types import Question
from searchparty.retrieval.types import Hit, Passage


class Fixed:
    """Answers every query with the same passages."""

    identity = "fixed"

    def __init__(self, *texts: str) -> None:
        self.hits = [Hit(Passage(f"p{rank}", f"title {rank}", text), rank, 1.0) for rank, text in enumerate(texts, start=1)]

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        return [self.hits[:k] for _ in queries]


def question(*answers: str, supporting: tuple[str, ...] = (), dataset: str = "set") -> Question:
    return Question("1", "who?", answers, dataset, supporting_ids=supporting)


def test_an_answer_counts_from_the_rank_of_the_first_passage_that_holds_it_as_whole_words() -> None:
    retriever = Fixed("the Beatlesque years", "nothing", "by The Beatles, in 1962", "Beatles")
    scores = score_retriever(retriever, [question("Beatles")], [1, 2, 3, 4])
    assert [scores[f"answer@{k}"]["set"] for k in (1, 2, 3, 4)] == [[0.0], [0.0], [1.0], [1.0]]


def test_an_answer_may_stand_in_the_title() -> None:
    assert score_retriever(Fixed("nothing"), [question("Title 1")], [1])["answer@1"]["set"] == [1.0]


def test_answers_of_yes_and_no_and_empty_ones_are_looked_for_nowhere() -> None:
    with pytest.raises(UserError, match="none of the questions"):
        score_retriever(Fixed("no, yes, the"), [question("yes"), question("No"), question("The")], [1])


def test_supporting_passages_give_recall_reciprocal_rank_and_gain() -> None:
    scores = score_retriever(Fixed("a", "b", "c", "d"), [question("x", supporting=("p2", "p4", "elsewhere"))], [1, 2, 4])
    assert [scores[f"golden@{k}"]["set"][0] for k in (1, 2, 4)] == [0, 1 / 3, 2 / 3]
    assert scores["mrr@4"]["set"] == [1 / 2]
    ideal = 1 + 1 / log2(3) + 1 / 2
    assert scores["ndcg@4"]["set"] == [pytest.approx((1 / log2(3) + 1 / log2(5)) / ideal)]
    assert scores["ndcg@1"]["set"] == [0]


def test_all_supporting_passages_first_are_a_gain_of_one() -> None:
    scores = score_retriever(Fixed("a", "b"), [question("x", supporting=("p1", "p2"))], [1, 2])
    assert scores["ndcg@1"]["set"] == scores["ndcg@2"]["set"] == [1.0]


def test_each_dataset_has_its_mean_and_macro_is_the_mean_of_those() -> None:
    asked = [question("found"), question("lost"), question("found", dataset="other")]
    estimates = estimate_scores(score_retriever(Fixed("found"), asked, [1]))["answer@1"]
    assert (estimates["set"].value, estimates["other"].value, estimates["macro"].value) == (0.5, 1.0, 0.75)
    assert estimates["other"].low < 1.0


def test_a_server_that_needs_0_2_s_for_a_question_answers_each_request_within_30_s() -> None:
    class Slow(Fixed):
        def __init__(self) -> None:
            super().__init__("found")
            self.asked: list[Sequence[str]] = []

        def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
            self.asked.append(queries)
            return super().search(queries, k)

    slow = Slow()
    names = [f"who is number {n}?" for n in range(200)]
    score_retriever(slow, [Question(str(n), name, ("found",), "set") for n, name in enumerate(names)], [1])
    assert [query for queries in slow.asked for query in queries] == names
    assert max(map(len, slow.asked)) * 0.2 < 30


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    corpus, questions = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"
    corpus.write_text(
        "".join(
            json.dumps({"id": f"p{n}", "title": word, "text": f"about {word}"}) + "\n"
            for n, word in enumerate(["apples", "pears"])
        )
    )
    rows = [
        {"id": "1", "dataset": "fruit", "question": "apples?", "golden_answers": ["apples"], "supporting_ids": ["p0"]},
        {"id": "2", "dataset": "fruit", "question": "pears?", "golden_answers": ["plums"], "supporting_ids": ["p1"]},
    ]
    questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["index", "build", str(corpus), "-o", str(tmp_path / "index")]) == 0
    return str(tmp_path / "index"), str(questions)


def test_the_command_prints_a_table_and_the_same_numbers_as_json(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["index", "evaluate", *files, "-k", "1,2"]) == 0
    assert "| answer@1 | 50.0 [" in capsys.readouterr().out
    assert main(["index", "evaluate", *files, "-k", "1,2", "--json"]) == 0
    measures = json.loads(capsys.readouterr().out)["measures"]
    assert (measures["golden@1"]["fruit"]["value"], measures["answer@2"]["fruit"]["value"]) == (1.0, 0.5)


@pytest.mark.parametrize("cutoffs", ["0", "-1", "3,x", ""])
def test_a_cutoff_that_is_no_number_of_hits_is_refused(files: tuple[str, str], cutoffs: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["index", "evaluate", *files, f"-k={cutoffs}"])
    assert stop.value.code == 2
