"""A run from recipe to numbers: what it writes, how it resumes, and that nothing asked is lost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from searchparty.cli.main import main
from searchparty.config.recipe import EvalRecipe
from searchparty.episodes.store import EpisodeWriter, read_episodes
from searchparty.episodes.types import Episode, StopReason
from searchparty.errors import UserError
from searchparty.evaluation.run import evaluate, score_run
from searchparty.evaluation.run_directory import RunDirectory
from searchparty.evaluation.scorers import scorer_named
from searchparty.evaluation.summary import RunSummary
from searchparty.questions import write_questions
from searchparty.questions.types import Question
from searchparty.retrieval.bm25 import BM25Index

QUESTIONS = [
    Question("1", "What is the capital of France?", ("Paris",), "nq"),
    Question("2", "What is the capital of Italy?", ("Rome",), "nq"),
    Question("1", "What is the capital of France?", ("Lutetia",), "old"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_questions(tmp_path / "questions.jsonl", QUESTIONS)
    corpus = tmp_path / "corpus.jsonl"
    passages = [("p1", "Paris", "Paris is the capital of France."), ("p2", "Rome", "Rome is the capital of Italy.")]
    corpus.write_text("".join(json.dumps({"id": id, "title": title, "text": text}) + "\n" for id, title, text in passages))
    BM25Index.build(corpus, tmp_path / "index")
    return tmp_path


def recipe_for(place: Path, **changes: Any) -> EvalRecipe:
    given = {
        "team": "chained",
        "model": "scripted:default",
        "questions": place / "questions.jsonl",
        "index": str(place / "index"),
    }
    return EvalRecipe.model_validate({**given, **changes})


def run(recipe: EvalRecipe, directory: Path, *, resume: bool = False, overwrite: bool = False) -> RunSummary:
    return asyncio.run(evaluate(recipe, directory, resume=resume, overwrite=overwrite, on_episode=lambda *_: None))


def essence(episode: Episode) -> Any:
    return [
        (transcript.agent, [(span.kind, list(span.ids or ()), span.logprobs) for span in transcript.spans])
        for transcript in episode.agents
    ]


def test_a_run_directory_holds_recipe_environment_questions_episodes_scores_and_summary(place: Path) -> None:
    summary = run(recipe_for(place, samples=2), place / "run")
    directory = RunDirectory(place / "run")
    assert directory.read_recipe() == recipe_for(place, samples=2)
    assert directory.read_questions() == QUESTIONS
    assert len(list(read_episodes(directory.episodes_file))) == 6
    assert len(directory.scores_file.read_text().splitlines()) == 6
    environment = json.loads(directory.environment_file.read_text())
    assert environment["models"] == {"searcher": "scripted:default", "answerer": "scripted:default"}
    assert environment["retriever"] and environment["packages"]["numpy"] and environment["questions"]["sha256"]
    assert (
        json.loads(directory.summary_file.read_text())["quality"]["macro"]["questions"]
        == summary.quality["macro"].questions
        == 3
    )


def test_questions_with_one_text_and_different_answers_are_scored_apart(place: Path) -> None:
    summary = run(recipe_for(place), place / "run")
    assert summary.quality["nq"].exact_match.value == 1.0
    assert summary.quality["old"].exact_match.value == 0.0


def test_the_same_recipe_gives_the_same_tokens_whatever_the_concurrency(place: Path) -> None:
    run(recipe_for(place, samples=3, concurrency=1), place / "one")
    run(recipe_for(place, samples=3, concurrency=16), place / "many")
    one, many = (RunDirectory(place / name).latest(lambda episode: episode) for name in ("one", "many"))
    assert {key: essence(episode) for key, episode in one.items()} == {key: essence(episode) for key, episode in many.items()}


def test_an_existing_run_is_refused_without_a_flag_and_stays_as_it_is(place: Path) -> None:
    run(recipe_for(place), place / "run")
    before = RunDirectory(place / "run").episodes_file.read_bytes()
    with pytest.raises(UserError, match="--resume to continue it or --overwrite"):
        run(recipe_for(place), place / "run")
    assert RunDirectory(place / "run").episodes_file.read_bytes() == before


def test_resuming_where_nothing_was_begun_is_refused(place: Path) -> None:
    with pytest.raises(UserError, match="nothing to resume"):
        run(recipe_for(place), place / "run", resume=True)


def test_overwriting_a_folder_that_is_no_run_is_refused_and_nothing_is_deleted(place: Path) -> None:
    (place / "thesis").mkdir()
    (place / "thesis" / "chapter.txt").write_text("precious")
    with pytest.raises(UserError, match="not overwritten"):
        run(recipe_for(place), place / "thesis", overwrite=True)
    assert (place / "thesis" / "chapter.txt").read_text() == "precious"


def test_a_resumed_run_plays_only_what_is_missing_and_ends_equal_to_an_uninterrupted_one(place: Path) -> None:
    whole = run(recipe_for(place, samples=2), place / "whole")
    run(recipe_for(place, samples=2), place / "cut")
    file = RunDirectory(place / "cut").episodes_file
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:2]) + lines[2][:100])
    played: list[str] = []
    resumed = asyncio.run(
        evaluate(
            recipe_for(place, samples=2), place / "cut", resume=True, overwrite=False,
            on_episode=lambda episode, *_: played.append(episode.question_key),
        )
    )  # fmt: skip
    assert len(played) == 4
    assert resumed.quality == whole.quality


def test_a_resumed_run_tries_episodes_again_that_a_service_ended_and_no_others(place: Path) -> None:
    run(recipe_for(place), place / "run")
    file = RunDirectory(place / "run").episodes_file
    episodes = list(read_episodes(file))
    file.unlink()
    episodes[0].stop_reason = StopReason.RETRIEVER_FAILED
    episodes[1].stop_reason = StopReason.INVALID_ANSWER
    with EpisodeWriter(file) as writer:
        for episode in episodes:
            writer.write(episode)
    summary = run(recipe_for(place), place / "run", resume=True)
    again = list(read_episodes(file))
    assert [episode.question_key for episode in again[3:]] == [episodes[0].question_key]
    assert summary.behaviour["all"].service_failures == 0
    assert summary.behaviour["all"].stop_reasons["invalid_answer"] == 1


def test_resuming_with_another_recipe_names_each_difference(place: Path) -> None:
    run(recipe_for(place), place / "run")
    with pytest.raises(UserError) as caught:
        run(recipe_for(place, seed=5, samples=2, concurrency=3), place / "run", resume=True)
    assert [line.split(": ", 1)[1].split(" was")[0] for line in caught.value.lines] == ["samples", "seed"]


def test_resuming_over_changed_questions_is_refused(place: Path) -> None:
    run(recipe_for(place), place / "run")
    write_questions(place / "questions.jsonl", QUESTIONS[:2])
    with pytest.raises(UserError, match=r"questions\.sha256 changed since the run was begun"):
        run(recipe_for(place), place / "run", resume=True)


def test_an_unfinished_run_is_not_scored(place: Path) -> None:
    run(recipe_for(place), place / "run")
    directory = RunDirectory(place / "run")
    directory.episodes_file.write_bytes(directory.episodes_file.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(UserError, match="2 of 3 episodes are missing"):
        score_run(directory, directory.read_recipe(), scorer_named("squad"))


def test_an_unfinished_run_is_scored_on_request_and_what_it_lacks_counts_as_wrong_and_is_shown_apart(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = run(recipe_for(place), place / "whole")
    run(recipe_for(place), place / "cut")
    directory = RunDirectory(place / "cut")
    first, *_ = directory.episodes_file.read_bytes().splitlines(keepends=True)
    directory.episodes_file.write_bytes(first)
    assert main(["score", str(place / "cut")]) == 2
    assert f"searchparty score {place / 'cut'} --unfinished" in capsys.readouterr().err
    assert main(["score", str(place / "cut"), "--unfinished"]) == 0
    assert "not played: 2 episodes of an unfinished run" in capsys.readouterr().out
    assert main(["compare", str(place / "whole"), str(place / "cut"), "--json"]) == 0
    complete, cut = json.loads(capsys.readouterr().out)["runs"]
    assert (complete["failed"], cut["failed"]) == (0, 2)
    assert cut["means"]["macro"]["value"] <= complete["means"]["macro"]["value"] == whole.quality["macro"].exact_match.value
    resumed = run(recipe_for(place), place / "cut", resume=True)
    assert resumed.quality == whole.quality


def test_scoring_again_with_another_scorer_changes_scores_and_no_episode(place: Path) -> None:
    run(recipe_for(place), place / "run")
    directory = RunDirectory(place / "run")
    before = directory.episodes_file.read_bytes()
    summary = score_run(directory, directory.read_recipe(), scorer_named("triviaqa"))
    assert summary.scorer == "triviaqa"
    assert directory.episodes_file.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"team": "chaned"}, "did you mean chained"),
        ({"index": None}, "give --index DIR"),
        ({"scorer": "squid"}, "did you mean squad"),
        ({"roles": {"sercher": {}}}, "did you mean searcher"),
        ({"model": "scripted:nobody"}, "no such script"),
        ({"questions": "none.jsonl"}, "no such file"),
    ],
)
def test_a_fault_in_a_recipe_is_found_before_anything_is_written(place: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run(recipe_for(place, **changes), place / "run")
    assert not (place / "run").exists()


def test_a_question_without_golden_answer_cannot_be_evaluated(place: Path) -> None:
    write_questions(place / "questions.jsonl", [Question("1", "Who?", (), "nq")])
    with pytest.raises(UserError, match="nq/1 has no golden answer"):
        run(recipe_for(place), place / "run")


@pytest.mark.parametrize("name", ["macro", "micro", "all", "macro of sets from 200 questions"])
def test_a_dataset_named_as_a_mean_over_datasets_is_refused_since_one_would_replace_the_other(place: Path, name: str) -> None:
    write_questions(place / "questions.jsonl", [QUESTIONS[0], Question("2", "Who?", ("Me",), name)])
    with pytest.raises(UserError, match=f"a dataset is named '{name}'.*--dataset NAME"):
        run(recipe_for(place), place / "run")
    assert not (place / "run").exists()


def test_the_name_of_a_dataset_reaches_the_terminal_without_control_characters(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = place / "questions.jsonl"
    write_questions(file, [Question("1", "Who?", ("Me",), "\x1b[31mred[bold]")])
    words = ["--team", "direct", "--model", "scripted:default", "--questions", str(file), "-o", str(place / "run")]
    assert main(["eval", *words]) == 0
    shown = capsys.readouterr().out
    assert "\\x1b[31mred[bold]" in shown and "\x1b" not in shown


def test_a_team_without_retrieval_needs_no_index(place: Path) -> None:
    assert run(recipe_for(place, team="direct", index=None), place / "run").behaviour["all"].searches == 0


def test_a_role_may_have_its_own_prompt_model_and_sampling(place: Path) -> None:
    prompt = place / "answerer.yaml"
    prompt.write_text("system: Say it.\nturns:\n  question: '{reports} Question: {question}'\n")
    roles = {"answerer": {"prompt": str(prompt), "model": "scripted:default", "sampling": {"max_tokens": 99}}}
    run(recipe_for(place, roles=roles), place / "run")
    episode = next(iter(RunDirectory(place / "run").latest(lambda episode: episode).values()))
    answerer = episode.transcript("answerer.1")
    assert "Say it." in answerer.spans[0].text
    assert answerer.calls[0].max_tokens == 99
    assert episode.transcript("searcher.1").calls[0].max_tokens == 512


def test_a_run_that_another_process_is_writing_is_neither_overwritten_nor_resumed(place: Path) -> None:
    run(recipe_for(place), place / "run")
    with RunDirectory(place / "run").locked():
        for flags in ({"overwrite": True}, {"resume": True}):
            with pytest.raises(UserError, match="another process is writing this run"):
                run(recipe_for(place), place / "run", **flags)
    assert len(list(read_episodes(RunDirectory(place / "run").episodes_file))) == 3


@pytest.mark.parametrize(
    "left", [("questions.jsonl",), ("questions.jsonl", "environment.json"), (".lock",), (".summary.json.77.tmp",)]
)
def test_a_directory_left_by_a_run_killed_while_it_began_is_simply_begun(place: Path, left: tuple[str, ...]) -> None:
    (place / "run").mkdir()
    for name in left:
        (place / "run" / name).write_text("{}\n")
    assert run(recipe_for(place), place / "run").behaviour["all"].episodes == 3


def test_a_link_to_a_folder_is_kept_and_written_into(place: Path) -> None:
    (place / "real").mkdir()
    (place / "link").symlink_to(place / "real")
    run(recipe_for(place), place / "link")
    run(recipe_for(place), place / "link", overwrite=True)
    assert (place / "link").is_symlink()
    assert (place / "real" / "summary.json").is_file()


def test_a_changed_prompt_file_is_a_difference_on_resume(place: Path) -> None:
    prompt = place / "answerer.yaml"
    prompt.write_text("system: Say it.\nturns:\n  question: '{reports} Question: {question}'\n")
    roles = {"answerer": {"prompt": str(prompt)}}
    run(recipe_for(place, roles=roles), place / "run")
    prompt.write_text("system: Say it well.\nturns:\n  question: '{reports} Question: {question}'\n")
    with pytest.raises(UserError, match=r"prompts\.answerer changed since the run was begun"):
        run(recipe_for(place, roles=roles), place / "run", resume=True)


def test_an_identity_that_was_unknown_when_the_run_began_is_no_difference_and_is_written_down(place: Path) -> None:
    run(recipe_for(place), place / "run")
    file = RunDirectory(place / "run").environment_file
    known = json.loads(file.read_text())
    file.write_text(json.dumps({**known, "retriever": None}))
    run(recipe_for(place), place / "run", resume=True)
    assert json.loads(file.read_text())["retriever"] == known["retriever"]


def test_a_prompt_that_does_not_fit_the_team_is_found_before_the_run_begins(place: Path) -> None:
    prompt = place / "searcher.yaml"
    prompt.write_text("turns:\n  task: '{tsk}'\n  passages: 'no field'\n")
    with pytest.raises(UserError) as caught:
        run(recipe_for(place, roles={"searcher": {"prompt": str(prompt)}}), place / "run")
    told = "\n".join(caught.value.lines)
    assert "turns.task: unknown field {tsk}; known: task" in told
    assert "turns.passages: uses none of its fields" in told
    assert "turns.must_report: this template is missing" in told
    assert not (place / "run").exists()


def test_a_roles_sampling_changes_only_what_it_names(place: Path) -> None:
    changes = {"sampling": {"temperature": 0.5, "top_k": 7}, "roles": {"answerer": {"sampling": {"max_tokens": 99}}}}
    run(recipe_for(place, **changes), place / "run")
    episode = next(iter(RunDirectory(place / "run").latest(lambda episode: episode).values()))
    call = episode.transcript("answerer.1").calls[0]
    assert (call.max_tokens, call.temperature, call.top_k) == (99, 0.5, 7)


def test_records_that_are_no_questions_are_counted_in_the_run(place: Path) -> None:
    record = {"question": "Who?", "answer": ["x"]}
    file = place / "nq.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in (record, {**record, "question": "What?"})))
    run(recipe_for(place, team="direct", questions=file), place / "run")
    assert json.loads(RunDirectory(place / "run").environment_file.read_text())["skipped_records"] == []
    cases = place / "cases.jsonl"
    good = {"why": "odd", "id": "1", "dataset": "nq", "question": "Who?", "golden_answers": ["x"]}
    cases.write_text("".join(json.dumps(one) + "\n" for one in (good, {"why": "a note"})))
    run(recipe_for(place, team="direct", questions=cases), place / "cases")
    (skipped,) = json.loads(RunDirectory(place / "cases").environment_file.read_text())["skipped_records"]
    assert "2" in skipped


def test_a_recipe_file_of_a_run_that_was_edited_is_one_line(place: Path) -> None:
    run(recipe_for(place), place / "run")
    file = RunDirectory(place / "run").recipe_file
    file.write_text(file.read_text() + "mood: good\n")
    with pytest.raises(UserError, match=r"recipe\.resolved\.yaml: mood: unknown key"):
        RunDirectory(place / "run").read_recipe()


def test_an_episode_of_a_question_that_was_not_asked_is_refused(place: Path) -> None:
    run(recipe_for(place), place / "run")
    directory = RunDirectory(place / "run")
    lines = directory.episodes_file.read_text().splitlines(keepends=True)
    directory.episodes_file.write_text("".join(lines) + lines[0].replace('"nq/1"', '"nq/9"'))
    with pytest.raises(UserError, match="which the run did not ask"):
        score_run(directory, directory.read_recipe(), scorer_named("squad"))


@pytest.mark.parametrize(
    "team", [{"name": "chained", "max_steps": 2}, {"name": "hierarchical", "max_steps": 4}, "direct", "rag"]
)
def test_the_scripted_roles_reach_an_answer_in_the_fewest_steps(place: Path, team: Any) -> None:
    summary = run(recipe_for(place, team=team), place / "run")
    assert summary.behaviour["all"].stop_reasons == {"answered": 3}


def test_faults_of_team_options_and_of_roles_are_told_together(place: Path) -> None:
    with pytest.raises(UserError) as caught:
        run(recipe_for(place, team={"name": "chained", "max_stps": 3}, roles={"anwerer": {}}), place / "run")
    assert len(caught.value.lines) == 2


def test_questions_of_a_run_that_were_edited_are_not_scored(place: Path) -> None:
    run(recipe_for(place), place / "run")
    directory = RunDirectory(place / "run")
    lines = directory.questions_file.read_text().splitlines(keepends=True)
    directory.questions_file.write_text("".join(lines[1:]))
    with pytest.raises(UserError, match="was changed after the run began"):
        score_run(directory, directory.read_recipe(), scorer_named("squad"))
