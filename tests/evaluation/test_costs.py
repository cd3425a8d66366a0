"""What episodes cost: tokens by class, turns, USD by a file of prices, and the table by workflow."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from playing import FixedRetriever, Lines, play_lines
from searchparty.cli.main import main
from searchparty.costs.prices import Price, check_prices, load_prices, priced_name
from searchparty.costs.spending import Tokens, spending_of, workflow_of, workflow_tree
from searchparty.episodes.types import Call, Episode
from searchparty.errors import Failure, FailureKind, UserError
from searchparty.evaluation.costs.by_workflow import by_workflow, costed
from searchparty.evaluation.scorers import scorer_named
from searchparty.evaluation.scoring import score_episode
from searchparty.retrieval.bm25 import BM25Index
from searchparty.teams.planned import Planned

EXAMPLE = Path(__file__).parents[2] / "src/searchparty/evaluation/costs/example_prices.yaml"
ANSWER = "<answer>Paris</answer>"


def planned(*plans: str) -> Episode:
    lines: dict[str, Any] = {
        "planner": [f"<workflow>{plan}</workflow>" for plan in plans],
        "qds": ["<question>a?</question><question>b?</question><question>c?</question>"],
        "qdp": ["<question>a?</question><question>b?</question>"],
        "ag": [ANSWER],
        "as": [ANSWER],
    }
    return play_lines(Planned(), Lines(lines), FixedRetriever())


def call(**counts: Any) -> Call:
    return Call(1, 0, 1, 1.0, 1.0, 0, 512, 0.0, **counts)


def prices_file(folder: Path, **models: Any) -> Path:
    path = folder / "prices.yaml"
    path.write_text(yaml.safe_dump({"dated": "2026-01-02", "source": "a test", "search": 0.5, "models": models}))
    return path


def test_cached_input_is_counted_and_paid_apart() -> None:
    tokens = Tokens()
    tokens.add(call(prompt_tokens=1_000_000, cached_tokens=400_000, output_tokens=100_000))
    tokens.add(call(prompt_tokens=500_000, output_tokens=0))
    assert (tokens.uncached_input, tokens.cached_input, tokens.output) == (1_100_000, 400_000, 100_000)
    assert tokens.usd(Price(input=1.0, cached_input=0.5, output=10.0)) == pytest.approx(1.1 + 0.2 + 1.0)
    assert tokens.usd(Price(input=1.0, output=10.0)) == pytest.approx(1.1 + 0.4 + 1.0)


def test_what_a_model_does_not_say_is_unknown_and_not_nothing() -> None:
    tokens = Tokens()
    tokens.add(call(prompt_tokens=10, output_tokens=None))
    assert tokens.output is None and tokens.total is None and tokens.usd(Price(input=1, output=1)) is None


def test_a_failed_call_costs_nothing() -> None:
    tokens = Tokens()
    tokens.add(call(prompt_tokens=10, failure=Failure("model", FailureKind.TIMEOUT, "slow")))
    assert tokens.total == 0


@pytest.mark.parametrize(("plans", "turns"), [(("RA, AG",), 1), (("QDP", "AG", "AG"), 2), (("QDS", "AG"), 4)])
def test_turns_are_one_more_for_a_parallel_decomposition_and_one_for_each_serial_sub_question(
    plans: tuple[str, ...], turns: int
) -> None:
    assert spending_of(planned(*plans)).turns == turns


def test_an_episode_costs_what_its_roles_used_and_its_searches(tmp_path: Path) -> None:
    episode = planned("RA, AG")
    prices = load_prices(prices_file(tmp_path, script={"input": 1.0, "output": 2.0}))
    spent = spending_of(episode)
    assert set(spent.by_role) == {("planner", "script"), ("ag", "script")} and spent.searches == 1
    read, written = (
        sum(getattr(one, field) for transcript in episode.agents for one in transcript.calls)
        for field in ("prompt_tokens", "output_tokens")
    )
    assert spent.usd(prices) == pytest.approx(0.5 + (read + 2 * written) / 1e6)
    assert spent.tokens == read + written


def test_without_a_price_for_a_model_there_is_no_sum(tmp_path: Path) -> None:
    assert spending_of(planned("AG")).usd(load_prices(prices_file(tmp_path, other={"input": 1, "output": 1}))) is None


def test_prices_that_leave_out_a_model_in_use_are_refused_with_its_name(tmp_path: Path) -> None:
    path = prices_file(tmp_path, **{"gpt-4o-mini": {"input": 1, "output": 1}})
    with pytest.raises(UserError, match=r"no price for gpt-4o-min, .*did you mean"):
        check_prices(load_prices(path), ["http://host:1/v1#gpt-4o-min (chat text)"], path)
    check_prices(load_prices(path), ["http://host:1/v1#gpt-4o-mini (chat text)"], path)


def test_a_price_below_zero_and_an_unknown_key_are_refused_together(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        load_prices(prices_file(tmp_path, one={"input": -1, "output": 1, "cached": 2}))
    assert len(refused.value.lines) == 2


def test_the_example_that_is_shipped_can_be_read_and_is_dated() -> None:
    assert load_prices(EXAMPLE).of("https://host/v1#gpt-4o-mini (chat text)") is not None
    assert priced_name("smollm2 sha256:12 float32") == "smollm2"
    assert priced_name("run:runs/demo#student sha256:12 float32") == "run:runs/demo#student"


def test_episodes_are_summed_up_by_the_workflow_of_their_own_question() -> None:
    episodes = [planned("AG"), planned("AG"), planned("QDP", "AG"), planned("DS, AG")]
    squad = scorer_named("squad")
    rows = by_workflow([(costed(one, None), score_episode(one, ["Paris"], squad)) for one in episodes])
    assert [(row.workflow, row.episodes) for row in rows] == [
        ("AG", 2), ("QDP", 1), ("broken: missing_prerequisite", 1), ("all", 4),
    ]  # fmt: skip
    assert rows[-1].exact_match == 0.75 and rows[0].usd is None


def test_every_number_of_a_workflow_has_the_interval_of_drawing_questions_again() -> None:
    plans = [("AG",), ("QDP", "AG"), ("AG",), ("DS, AG",)] * 3
    episodes = [replace(planned(*plan), question_key=f"nq/{number}") for number, plan in enumerate(plans)]
    squad = scorer_named("squad")
    rows = by_workflow([(costed(one, None), score_episode(one, ["Paris"], squad)) for one in episodes])
    first, whole = rows[0], rows[-1]
    assert first.share == 0.5 and first.intervals["share"][0] < 0.5 < first.intervals["share"][1] <= 1
    assert whole.intervals["exact_match"][0] <= whole.exact_match <= whole.intervals["exact_match"][1]
    assert first.intervals["exact_match"] == pytest.approx((0.6097, 1.0), abs=1e-4), "Wilson's of 6 questions, all right"
    assert first.intervals["searches"] == (first.searches, first.searches)
    assert "usd" not in first.intervals and "share" not in whole.intervals
    one_question = by_workflow([(costed(planned("AG"), None), score_episode(planned("AG"), ["Paris"], squad))] * 40)
    assert one_question[0].intervals["exact_match"][0] < 0.25, "40 attempts at one question are one question"


def test_the_tree_names_each_question_its_workflow_and_its_answer() -> None:
    tree = workflow_tree(planned("QDP", "RA, AG", "DS, AG"))
    assert tree[0].startswith("What is the capital of France?  [QDP → AS]  Paris")
    assert tree[1] == "  a?  [RA → AG]  Paris" and tree[2] == "  b?  [broken (missing_prerequisite): DS, AG]  no answer"
    assert workflow_of(planned("AG, RA")) == "broken: wrong_order"


def test_what_worked_stands_behind_the_chosen_workflow_where_it_is_something_else() -> None:
    undone = Lines({"planner": ["<workflow>QDS</workflow>"], "qds": ["<question>a?</question>"], "ag": [ANSWER]})
    [line] = workflow_tree(play_lines(Planned(), undone, FixedRetriever()))
    assert "[QDS; worked: QDS → RA → AG]  Paris" in line and line.endswith("QDS of no use (bad_content)")
    gone = Failure("model", FailureKind.UNREACHABLE, "gone")
    [line] = workflow_tree(play_lines(Planned(), Lines({"planner": ["<workflow>RA, AG</workflow>"], "ag": [gone]})))
    assert line.endswith("[RA → AG; worked: RA]  no answer")
    unplanned = play_lines(Planned(), Lines({"planner": [gone]}))
    assert workflow_of(unplanned) == "none: model_failed" and workflow_tree(unplanned)[0].endswith("[none]  no answer")
    [line] = workflow_tree(planned(", ".join(["RA"] * 100)))
    assert line.endswith(f"[broken (repeated): {'RA, ' * 8}…]  no answer")


def test_ask_shows_what_a_planned_team_chose_did_and_cost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["ask", "Who?", "--team", "planned", "--model", "scripted:default", "team.workflow=AG", "--index"]
    BM25Index.build(Path(__file__).parents[1] / "data/retrieval/passages.jsonl", tmp_path / "index")
    assert main([*words, str(tmp_path / "index")]) == 0
    printed = capsys.readouterr().out
    assert "workflow Who?  [AG]  unknown" in printed and "no price: give prices=FILE for USD" in printed
    prices = prices_file(tmp_path, **{"scripted:default": {"input": 1.0, "output": 1.0}})
    assert main([*words, str(tmp_path / "index"), f"prices={prices}"]) == 0
    printed = capsys.readouterr().out
    assert "tokens   ag (scripted:default): " in printed and re.search(r"0 searches, 1 turns, .* s, 0\.\d{6} USD", printed)


def test_ask_shows_the_workflow_its_tokens_and_its_price(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = prices_file(tmp_path, **{"scripted:default": {"input": 1.0, "output": 1.0}})
    words = ["ask", "Who?", "--team", "direct", "--model", "scripted:default", f"prices={path}"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "tokens   answerer (scripted:default)" in printed and "USD" in printed
    assert main([*words[:-1], f"prices={prices_file(tmp_path, other={'input': 1, 'output': 1})}"]) == 2
    assert "no price for scripted:default" in capsys.readouterr().err
