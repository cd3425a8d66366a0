"""The example of docs/new-team.md works as the page says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from playing import PARIS, FixedRetriever, Lines, scripted_model
from searchparty.episodes.types import StopReason
from searchparty.models.types import Sampling
from searchparty.teams.cast import Part
from searchparty.teams.play import play
from searchparty.teams.prompts import load_prompt
from searchparty.teams.registry import find_team, make_team

DOCS = Path(__file__).parents[2] / "docs"
FILE = DOCS / "examples" / "second_opinion.py"


def test_the_example_team_plays_an_episode() -> None:
    team = make_team(find_team(f"{FILE}:SecondOpinion"), {"passages": 2})
    lines = Lines(
        {"reader": ["<opinion>Paris, it says.</opinion>", "<opinion>Lyon.</opinion>"], "judge": ["<answer>Paris</answer>"]}
    )
    cast = {
        role: Part(scripted_model(lines), load_prompt(FILE.parent / name), Sampling()) for role, name in team.prompts.items()
    }
    retriever = FixedRetriever(("Paris is the capital.",) * 3)
    episode = asyncio.run(play(team, PARIS, cast, retriever))
    assert (episode.stop_reason, episode.steps, len(episode.retrievals)) == (StopReason.ANSWERED, 2, 1)
    heard = episode.transcript("judge.1").spans[1].text
    assert "reader.1 says: Paris, it says." in heard
    assert "reader.2 says: Lyon." in heard
    assert len(episode.retrievals[0].hits) == 2


def test_a_reader_out_of_form_ends_the_example_with_a_recorded_reason() -> None:
    team = make_team(find_team(f"{FILE}:SecondOpinion"), {})
    lines = Lines({"reader": ["I think Paris."], "judge": ["<answer>Paris</answer>"]})
    cast = {
        role: Part(scripted_model(lines), load_prompt(FILE.parent / name), Sampling()) for role, name in team.prompts.items()
    }
    assert asyncio.run(play(team, PARIS, cast, FixedRetriever())).stop_reason is StopReason.INVALID_ACTION


def test_the_page_shows_the_code_of_the_example() -> None:
    page = (DOCS / "new-team.md").read_text()
    (shown,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    code = re.sub(r"^    ", "", FILE.read_text(), flags=re.MULTILINE)
    assert shown.strip() in code


def test_the_run_function_of_the_example_stays_under_thirty_lines() -> None:
    code = FILE.read_text()
    body = code[code.index("@dataclass") :]
    assert len(body.strip().splitlines()) <= 30
