"""Every format is found by content, and its first record read exactly, on files as their publishers wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest
from question_files import DATA, compressed

from searchparty.errors import UserError
from searchparty.questions.formats import FORMATS
from searchparty.questions.reading import load_questions, read_questions
from searchparty.questions.types import Question

ASTRONAUT = ("when was the last time anyone was on the moon", ("14 December 1972 UTC", "December 1972"))
SHIRLEY = (
    "What government position was held by the woman who portrayed Corliss Archer in the film Kiss and Tell?",
    ("Chief of Protocol",),
)
PHYSICS = ("who got the first nobel prize in physics", ("Wilhelm Conrad Röntgen",))
CITIBANK = ("Who was president of the United States in the year that Citibank was founded?", ("james madison",))

CAULIFLOWER = Question(
    "test_6233",
    '"Who wrote ""A cauliflower is nothing but a cabbage with a college education""?"',
    (
        "Mark Twain",
        "Thomas Jefferson Snodgrass",
        "Sam Clemens",
        "Samuel Clements",
        "Twainesque",
        "Samuel Langhorn Clemens",
        "Mark twain",
        "Twain, Mark",
        "Sergeant Fathom",
        "Samuel Longhorn Clemens",
        "Samuel L. Clemens",
        "Samuel Langhorne Clemens",
        "Sam Langhorne Clemens",
        "Samuel Clemens",
        "SL Clemens",
        "Twainian",
        "Reports of my death are greatly exaggerated",
        "Soleather",
        "W. Epaminondas Adrastus Blab",
        "Samuel Longhorne Clemens",
        "Marc Twain",
        "Samual Clemens",
    ),
    "triviaqa",
    split="test",
)

REAL_FILES: dict[str, tuple[str, int, Question]] = {
    "flashrag_nq_test.sample.jsonl": (
        "flashrag",
        20,
        Question("test_3283", "who told the story of the prodigal son", ("Jesus Christ",), "nq", split="test"),
    ),
    "flashrag_popqa_test.sample.jsonl": (
        "flashrag",
        15,
        Question(
            "test_10207",
            "Who was the composer of Easy Living?",
            ("Ralph Rainger", "Ralph Reichenthal"),
            "popqa",
            supporting_titles=("Easy Living (1937 film)",),
            hops=1,
            type="composer",
            split="test",
        ),
    ),
    "flashrag_triviaqa_test.sample.jsonl": ("flashrag", 15, CAULIFLOWER),
    "search_r1_nq_test.sample.parquet": (
        "search_r1",
        60,
        Question("test_0", PHYSICS[0] + "?", PHYSICS[1], "nq", split="test", source="nq"),
    ),
    "agentic_rag_nq_test.sample.parquet": (
        "agentic_rag",
        60,
        Question("nq_test_0", *ASTRONAUT, "nq", split="test", source="google-research-datasets/nq_open"),
    ),
    "agentic_rag_musique_test.sample.parquet": (
        "agentic_rag",
        60,
        Question(
            "musique_test_0",
            "Who is the spouse of the Green performer?",
            ("Miquette Giraudy",),
            "musique",
            split="test",
            source="bdsaglam/musique",
        ),
    ),
    "ambigqa_agentic_rag.sample.jsonl": (
        "agentic_rag",
        15,
        Question(
            "ambigqa_test_0",
            "Who plays the doctor in dexter season 1?",
            ("Tony Goldwyn",),
            "ambigqa",
            split="test",
            source="sewon/ambig_qa",
        ),
    ),
    "hotpotqa_dev_distractor.sample.json": (
        "hotpotqa",
        3,
        Question(
            "5a8c7595554299585d9e36b6",
            *SHIRLEY,
            "hotpotqa",
            supporting_titles=("Kiss and Tell (1945 film)", "Shirley Temple"),
            hops=2,
            type="bridge",
        ),
    ),
    "hotpotqa_hf_layout.sample.jsonl": (
        "hotpotqa_hf",
        3,
        Question(
            "5a8ce55f554299441c6b9f62",
            'The band who released the debut album "Tinted Windows" had their first performance in what city?',
            ("Tulsa",),
            "hotpotqa",
            supporting_titles=("Tinted Windows (album)", "Tinted Windows (band)"),
            hops=2,
            type="bridge",
        ),
    ),
    "2wikimultihopqa_dev.sample.json": (
        "2wiki",
        3,
        Question(
            "b088d3ca08e211ebbda4ac1f6bf848b6",
            "Which film whose director is younger, Forbidden Ground or Free Guy?",
            ("Free Guy",),
            "2wikimultihopqa",
            supporting_titles=("Forbidden Ground", "Free Guy", "Pál Gábor", "Shawn Levy"),
            hops=4,
            type="bridge_comparison",
        ),
    ),
    "2wikimultihopqa_no_context.sample.json": (
        "2wiki",
        5,
        Question(
            "13c1565a087311ebbd66ac1f6bf848b6",
            "Do both directors of films Jatt & Juliet and Sciopèn share the same nationality?",
            ("no",),
            "2wikimultihopqa",
            supporting_titles=("Jatt & Juliet", "Sciopèn", "Anurag Singh (director)", "Luciano Odorisio"),
            hops=4,
            type="bridge_comparison",
        ),
    ),
    "musique_ans_v1.0_dev.sample.jsonl": (
        "musique",
        4,
        Question(
            "2hop__574419_270105",
            "What is the seat of the county where Van Hook Township is located?",
            ("Stanley",),
            "musique",
            supporting_titles=("Mountrail County Courthouse", "Van Hook Township, Mountrail County, North Dakota"),
            hops=2,
            type="2hop",
        ),
    ),
    "ircot_processed_hotpotqa.sample.jsonl": (
        "ircot",
        3,
        Question(
            "5a8c7595554299585d9e36b6",
            *SHIRLEY,
            "hotpotqa",
            supporting_titles=("Shirley Temple", "Kiss and Tell (1945 film)"),
        ),
    ),
    "popQA.rewritten.sample.tsv": (
        "popqa",
        20,
        Question(
            "4222362",
            "What is George Rankin's occupation?",
            ("politician", "political leader", "political figure", "polit.", "pol"),
            "popqa",
            supporting_titles=("George Rankin",),
            hops=1,
            type="occupation",
            split="test",
        ),
    ),
    "nq_open_dev.sample.jsonl": ("nq_open", 60, Question("nq_0", *ASTRONAUT, "nq")),
    "nq_efficientqa_test.sample.jsonl": (
        "nq_open",
        10,
        Question("nq_0", "on the 6th day of christmas my true love sent to me", ("6 geese a-laying", "maids a-milking"), "nq"),
    ),
    "2wikimultihopqa_flashrag_like_qa.sample.jsonl": (
        "nq_open",
        30,
        Question(
            "2wikimultihopqa_0",
            "Who is the mother of the director of film Polish-Russian War (Film)?",
            ("Małgorzata Braunek",),
            "2wikimultihopqa",
        ),
    ),
    "nq_dpr_test.sample.tsv": ("dpr_tsv", 59, Question("nq_0", *PHYSICS, "nq")),
    "triviaqa_dpr_test.sample.tsv": (
        "dpr_tsv",
        25,
        Question("triviaqa_0", "Who was the man behind The Chipmunks?", ("David Seville",), "triviaqa"),
    ),
    "nq_open_oracle_dpr_ctxs.sample.jsonl": (
        "dpr_json",
        5,
        Question("nq_0", *PHYSICS, "nq", supporting_titles=("List of Nobel laureates in Physics",)),
    ),
    "kilt_task_gold.jsonl": (
        "kilt",
        3,
        Question("1", "In one word, how did Chen Yi-hsiung die?", ("suicide",), "kilt", supporting_titles=("Chen Yi-hsiung",)),
    ),
    "kilt_qa_locorag.sample.jsonl": (
        "kilt",
        8,
        Question(
            "5abe953b5542993f32c2a170",
            "what is one of the stars of  The Newcomers known for",
            ("superhero roles as the Marvel Comics",),
            "hotpotqa",
        ),
    ),
    "bamboogle.csv": ("bamboogle", 125, Question("bamboogle_0", *CITIBANK, "bamboogle", hops=2, split="test")),
    "r1_searcher_bamboogle.jsonl": ("r1_searcher", 15, Question("1", *CITIBANK, "bamboogle")),
    "hotpotqa_beir_topics.sample.tsv": (
        "beir",
        50,
        Question("5a8b57f25542995d1e6f1371", "Were Scott Derrickson and Ed Wood of the same nationality?", (), "hotpotqa"),
    ),
}

NOT_QUESTIONS = {
    "wiki18_flashrag.sample.jsonl": "corpus (wiki-18",
    "wiki18_original_ids.sample.jsonl": "corpus (wiki-18",
    "wiki18_search_r1_example.jsonl": "corpus (wiki-18",
    "psgs_w100.rewritten.sample.tsv": "corpus (DPR's passages",
    "kilt_100w_r1_searcher.sample.tsv": "corpus (number, passage)",
    "abstracts_bom_r1_searcher.sample.tsv": "corpus (number, Title: ... Text: ...)",
    "kilt_pages_filtered.sample.jsonl": "this is KILT's knowledge source, whole pages",
    "hipporag_2wiki_corpus.sample.json": "corpus (title, text)",
    "hotpotqa_beir_qrels.sample.txt": "relevance judgements",
}


@pytest.mark.parametrize("name", REAL_FILES)
def test_each_real_file_is_recognised_and_read_exactly(name: str) -> None:
    format_name, count, first = REAL_FILES[name]
    loaded = load_questions(DATA / name)
    assert loaded.format == format_name
    assert len(loaded.questions) == count
    assert loaded.questions[0] == first
    assert len({question.key for question in loaded.questions}) == count


@pytest.mark.parametrize("name", NOT_QUESTIONS)
def test_corpora_and_judgements_are_refused_by_what_they_are(name: str) -> None:
    with pytest.raises(UserError) as fault:
        read_questions(DATA / name)
    assert NOT_QUESTIONS[name] in str(fault.value)
    assert str(DATA / name) in str(fault.value)


def test_every_file_of_the_folder_is_covered() -> None:
    covered = {*REAL_FILES, *NOT_QUESTIONS, "odd.jsonl"}
    assert {path.name for path in DATA.iterdir()} == covered


def test_every_published_format_has_a_real_file_or_is_tested_in_small() -> None:
    in_small = {"native", "cases", "ambigqa"}
    assert {form for form, _, _ in REAL_FILES.values()} | in_small == set(FORMATS)


@pytest.mark.parametrize("name", ["bamboogle.csv", "nq_open_dev.sample.jsonl", "hotpotqa_dev_distractor.sample.json"])
def test_compression_and_file_names_do_not_matter_to_the_format(name: str, tmp_path: Path) -> None:
    packed = load_questions(compressed(tmp_path / "anything", DATA / name))
    assert packed.format == REAL_FILES[name][0]
    assert [question.text for question in packed.questions] == [question.text for question in read_questions(DATA / name)]


@pytest.mark.parametrize("name", REAL_FILES)
def test_the_format_found_can_also_be_forced(name: str) -> None:
    assert read_questions(DATA / name, format=REAL_FILES[name][0]) == read_questions(DATA / name)


def test_the_users_dataset_beats_what_the_data_say() -> None:
    questions = read_questions(DATA / "agentic_rag_nq_test.sample.parquet", dataset="mine")
    assert {question.dataset for question in questions} == {"mine"}
    assert questions[0].id == "mine_test_0"
