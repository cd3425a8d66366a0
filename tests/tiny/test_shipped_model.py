from collections.abc import Mapping
from functools import cache

import pytest

from searchparty.episodes.types import Episode
from searchparty.models.loading import load_model
from searchparty.models.types import Sampling
from searchparty.tiny import shipped_model
from searchparty.tiny.lessons import play_teams
from searchparty.tiny.measuring import TEAMS, figures
from searchparty.world import World, WorldParameters, make_world

QUESTIONS = 40


@cache
def world() -> World:
    return make_world(WorldParameters(seed=31337, entities=300, train=1, dev=1, test=QUESTIONS))


@cache
def played() -> Mapping[str, list[Episode]]:
    """One greedy episode per question and team: the same on every machine, but for rounding."""
    asked = world().questions["test"]
    model = load_model("tiny", device="cpu")
    episodes = play_teams(model, world(), dict.fromkeys(TEAMS, asked), sampling=Sampling(temperature=0, max_tokens=96))
    return {team: episodes[place * QUESTIONS : (place + 1) * QUESTIONS] for place, team in enumerate(TEAMS)}


def test_it_is_small_and_says_what_it_is() -> None:
    files = [path for path in shipped_model().iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 6 * 2**20
    model = load_model("tiny", device="cpu")
    assert model.context_tokens == 1024
    assert model.identity.startswith("tiny sha256:") and model.identity.endswith("float32")


@pytest.mark.parametrize("team", TEAMS)
def test_it_plays_every_role_of_every_team_in_well_formed_turns(team: str) -> None:
    measured = figures(played()[team], world().questions["test"])
    assert measured.well_formed >= 0.95
    assert measured.answered >= 0.9


@pytest.mark.parametrize("team", ["chained", "hierarchical"])
def test_it_answers_in_a_new_world_better_than_by_chance_and_worse_than_an_expert(team: str) -> None:
    measured = figures(played()[team], world().questions["test"])
    assert 0.2 <= measured.exact_match <= 0.8
    assert measured.searches >= 1


def test_without_passages_it_can_only_guess() -> None:
    assert figures(played()["direct"], world().questions["test"]).exact_match < 0.25


def test_its_episodes_are_token_exact() -> None:
    assert all(episode.token_exact for episodes in played().values() for episode in episodes)
