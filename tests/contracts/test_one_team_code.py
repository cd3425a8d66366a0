"""Contract 13: one team code. Whatever command plays a team plays the same function, token for token."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

from playing import PARIS, FixedRetriever, cast_for, good_lines, scripted_model
from searchparty.episodes.types import Episode, Retrieval, Span, Transcript
from searchparty.teams.play import play
from searchparty.teams.registry import BUILT_IN

SOURCE = Path(__file__).parents[2] / "src" / "searchparty"


class Watcher:
    """Hears everything, as `ask` does."""

    def __init__(self) -> None:
        self.spans: list[Span] = []

    def on_span(self, transcript: Transcript, span: Span) -> None:
        self.spans.append(span)

    def on_search(self, retrieval: Retrieval) -> None:
        """Only spans are compared."""


def ids_of(episode: Episode) -> list[tuple[str, list[int], int | None]]:
    return [
        (transcript.agent, list(span.ids or ()), transcript.calls[span.call].seed if span.call is not None else None)
        for transcript in episode.agents
        for span in transcript.spans
    ]


def test_contract_13_a_watched_episode_equals_an_evaluated_one_token_for_token() -> None:
    for team_class in BUILT_IN.values():
        team = team_class()
        watcher = Watcher()
        cast = [cast_for(team, scripted_model(good_lines())) for _ in range(2)]
        watched = asyncio.run(play(team, PARIS, cast[0], FixedRetriever(), seed=3, listener=watcher))
        evaluated = asyncio.run(play(team, PARIS, cast[1], FixedRetriever(), seed=3))
        assert ids_of(watched) == ids_of(evaluated)
        assert sum(len(transcript.spans) for transcript in watched.agents) == len(watcher.spans)


def test_contract_13_only_one_place_runs_a_team() -> None:
    """Commands and runs call `play`; nobody else calls a team's `run`."""
    callers = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("team.run", "stage.team.run", "self.team.run")
    ]
    assert callers == ["teams/play.py"]


def test_contract_13_rooms_import_in_one_direction() -> None:
    """Teams know nothing of training or evaluation; evaluation, cli and serving come after them."""
    forbidden = {
        "questions": {"retrieval", "models", "episodes", "teams", "evaluation", "cli", "credit", "learning"},
        "retrieval": {"models", "episodes", "teams", "evaluation", "cli", "credit", "learning"},
        "models": {"retrieval", "episodes", "teams", "evaluation", "cli", "credit", "learning"},
        "episodes": {"models", "teams", "evaluation", "cli", "credit", "learning"},
        "teams": {"evaluation", "cli", "credit", "learning"},
        "config": {"questions", "retrieval", "models", "episodes", "teams", "evaluation", "cli", "credit", "learning"},
        "evaluation": {"cli", "credit", "learning"},
    }
    for room, others in forbidden.items():
        for path in (SOURCE / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("searchparty."):
                    assert (node.module or "").split(".")[1] not in others, f"{path} imports {node.module}"
