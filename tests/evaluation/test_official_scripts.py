"""Our rendering of each official evaluation script gives the numbers that the script itself gave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from searchparty.evaluation.official_scripts import OFFICIAL_SCRIPTS
from searchparty.evaluation.scorers import SCORERS

CASES_FILE = Path(__file__).parents[1] / "data" / "evaluation" / "official_cases.jsonl"
CASES: list[dict[str, Any]] = [
    record for line in CASES_FILE.read_text(encoding="utf-8").splitlines() if (record := json.loads(line))["kind"] == "answer"
]

every_case = pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
every_script = pytest.mark.parametrize("name", OFFICIAL_SCRIPTS)


@every_case
@every_script
def test_each_script_gives_the_recorded_numbers(name: str, case: dict[str, Any]) -> None:
    script, recorded = OFFICIAL_SCRIPTS[name], case["results"][name]
    assert script.exact_match(case["prediction"], case["golds"]) == recorded["em"]
    assert round(script.f1(case["prediction"], case["golds"]), 4) == recorded["f1"]


@every_case
@every_script
def test_guarded_scores_equal_the_official_ones_unless_the_golden_answer_is_empty(name: str, case: dict[str, Any]) -> None:
    score, recorded = SCORERS[name].score(case["prediction"], case["golds"]), case["results"][name]
    is_free_point = case["golds"] == [""]
    assert score.scorable is not is_free_point
    assert score.exact_match == (0.0 if is_free_point else recorded["em"])
    assert round(score.f1, 4) == (0.0 if is_free_point else recorded["f1"])


@every_case
def test_cover_exact_match_is_the_recorded_substring_match_unless_the_golden_answer_is_empty(case: dict[str, Any]) -> None:
    expected = 0.0 if case["golds"] == [""] else case["substring_match"]
    assert SCORERS["squad"].cover_exact_match(case["prediction"], case["golds"]) == expected


def test_the_cases_tell_the_five_families_apart() -> None:
    """Otherwise one function under five names would pass. Only HotpotQA and 2Wiki agree: their scripts share the rule."""
    outcomes = {name: json.dumps([case["results"][name] for case in CASES]) for name in OFFICIAL_SCRIPTS}
    assert len(set(outcomes.values())) == 4
    assert outcomes["hotpotqa"] == outcomes["2wiki"]


@every_script
def test_a_script_needs_a_list_with_at_least_one_golden_answer(name: str) -> None:
    with pytest.raises(ValueError):
        OFFICIAL_SCRIPTS[name].exact_match("Paris", [])
    with pytest.raises(TypeError, match="list of strings"):
        OFFICIAL_SCRIPTS[name].f1("Paris", "Paris")
