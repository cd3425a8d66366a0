"""Finding teams by name and building them from a recipe's options."""

from __future__ import annotations

from pathlib import Path

import pytest

from searchparty.errors import UserError
from searchparty.teams.chained import Chained
from searchparty.teams.registry import find_team, make_team

OWN_TEAM = '''
from dataclasses import dataclass
from typing import ClassVar
from searchparty.teams.team import Team

@dataclass(frozen=True)
class Mine(Team):
    """A team."""
    name: ClassVar = "mine"
    tags: ClassVar = {"answerer": ("answer",)}
    prompts: ClassVar = {"answerer": "direct_answerer"}
    async def run(self, question, workspace):
        return workspace.agent("answerer")
'''


def test_a_team_is_found_in_a_file_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OWN_TEAM)
    assert find_team(f"{path}:Mine").name == "mine"


def test_a_misspelt_name_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean chained"):
        find_team("chaned")


def test_a_file_without_that_class_says_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OWN_TEAM)
    with pytest.raises(UserError, match="it has: Mine"):
        find_team(f"{path}:Yours")


def test_a_missing_file_and_a_file_that_raises_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        find_team(f"{tmp_path}/none.py:Mine")
    broken = tmp_path / "broken.py"
    broken.write_text("1/0")
    with pytest.raises(UserError, match="running the file raised ZeroDivisionError"):
        find_team(f"{broken}:Mine")
    broken.write_text("raise SystemExit(0)")
    with pytest.raises(UserError, match="running the file raised SystemExit"):
        find_team(f"{broken}:Mine")


def test_options_set_the_fields_of_the_team() -> None:
    assert make_team(Chained, {"max_steps": 7, "passages": 5}) == Chained(max_steps=7, passages=5)


def test_all_wrong_options_are_named_at_once() -> None:
    with pytest.raises(UserError) as caught:
        make_team(Chained, {"max_step": 7, "passages": "many"})
    assert len(caught.value.lines) == 2
    assert "did you mean max_steps?" in caught.value.lines[0]
    assert "team.passages" in caught.value.lines[1]


def test_a_budget_below_the_minimum_is_refused() -> None:
    with pytest.raises(UserError, match="needs at least 2"):
        make_team(Chained, {"max_steps": 1})
