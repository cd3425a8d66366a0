"""Contract 13: one team code. Whatever command plays a team plays the same function, token for token."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest

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


MAY_IMPORT = {
    "http_server": set(),
    "config": set(),
    "questions": set(),
    "retrieval": {"http_server"},
    # Two lazy imports: a script is named by the folder of the world that it knows, the tiny policy by its name.
    "models": {"world", "tiny"},
    "episodes": set(),
    "teams": {"questions", "retrieval", "models", "episodes"},
    "world": {"questions", "retrieval", "models", "teams"},
    "costs": {"config", "episodes"},
    "credit": {"episodes", "teams", "costs"},
    "learning": {"credit", "models", "episodes", "teams"},
    "evaluation": {"config", "questions", "retrieval", "models", "episodes", "teams", "costs", "world"},
    "serving": {"http_server", "config", "questions", "retrieval", "episodes", "teams", "costs", "evaluation"},
    "training": {
        "config",
        "questions",
        "retrieval",
        "models",
        "episodes",
        "teams",
        "costs",
        "credit",
        "learning",
        "evaluation",
    },
    "diagnosis": {"questions", "episodes", "teams", "evaluation", "training"},
    "judging": {"questions", "models", "teams", "evaluation"},
    "reporting": {"questions", "credit", "diagnosis", "episodes", "evaluation", "judging", "training"},
    "tiny": {"questions", "retrieval", "models", "episodes", "teams", "world", "credit", "learning", "evaluation"},
}
"""Room to the rooms that it may import. Those of `OPEN_TO_ALL` are open to all; `cli` and `demo` may import all."""

OPEN_TO_ALL = {"errors", "files", "file_digest", "http_calls"}


def imported_rooms(path: Path) -> set[str]:
    """The rooms that a module imports, at its top or inside its functions."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("searchparty.")}


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_contract_13_rooms_import_in_one_direction(room: str) -> None:
    """Teams know nothing of training or evaluation; evaluation and commands come after them."""
    for path in (SOURCE / room).rglob("*.py"):
        unexpected = imported_rooms(path) - MAY_IMPORT[room] - OPEN_TO_ALL - {room}
        assert not unexpected, f"{path.relative_to(SOURCE)} imports {', '.join(unexpected)}"


def test_the_architecture_page_names_every_room() -> None:
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text()
    assert all(f"`{room}`" in page for room in (*MAY_IMPORT, *OPEN_TO_ALL, "cli", "demo"))
