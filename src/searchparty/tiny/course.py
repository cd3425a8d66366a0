"""Everything about the tiny policy's training that is a choice: which worlds, which experts, how much of each."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from searchparty.models.bytes import ByteTokenizer
from searchparty.tiny.language import pieces
from searchparty.tiny.lessons import Lesson, play_lesson
from searchparty.world import Faults, WorldParameters, make_world

EASY_HOPS, ALL_HOPS = (1.0, 0.0, 0.0, 0.0), (3.0, 4.0, 2.0, 1.0)
FAULTS = (
    Faults(naive_query=0.1, skip_search=0.1, wrong_name=0.03, malformed=0.004, skip_task=0.05, whole_task=0.1,
           drop_report=0.05, wrong_report=0.03),
    Faults(naive_query=0.2, skip_search=0.2, wrong_name=0.06, malformed=0.008, skip_task=0.1, whole_task=0.15,
           drop_report=0.1, wrong_report=0.06),
)  # fmt: skip
"""Half of the worlds are played with few mistakes, half with about as many as `world-imperfect` makes."""
VOCABULARY_SEED = 900
FEWEST_QUESTIONS = 8


@dataclass(frozen=True)
class Course:
    """Lessons in their order."""

    reading: tuple[Lesson, ...]
    """Every token is learned."""
    playing: Lesson
    """Actions alone are learned."""


def full_course(effort: float = 1.0) -> Course:
    """The course that made the shipped model, or a share of it: fewer worlds, and fewer questions once it is less than one."""
    teams = {"chained": 1.0, "hierarchical": 1.0, "rag": 0.5, "direct": 0.1}
    easy = Lesson(20, 1000, EASY_HOPS, {"chained": 1.0, "hierarchical": 0.5, "rag": 1.0}, FAULTS, questions=80)
    hard = Lesson(10, 2000, ALL_HOPS, teams, FAULTS)
    playing = Lesson(52, 3000, ALL_HOPS, teams, FAULTS)
    return Course((_part(easy, effort), _part(hard, effort)), _part(playing, effort))


def _part(lesson: Lesson, effort: float) -> Lesson:
    worlds = effort * lesson.worlds
    questions = max(FEWEST_QUESTIONS, round(lesson.questions * min(1.0, worlds)))
    return dataclasses.replace(lesson, worlds=max(1, round(worlds)), questions=questions)


def vocabulary() -> list[str]:
    """The pieces of all that is said and read in one world of the usual kind, with every mistake but malformed turns."""
    faults = dataclasses.replace(FAULTS[1], malformed=0.0)
    lesson = Lesson(1, VOCABULARY_SEED, ALL_HOPS, dict.fromkeys(("direct", "rag", "chained", "hierarchical"), 1.0), (faults,),
                    entities=600, questions=300)  # fmt: skip
    (episodes,) = play_lesson(lesson, ByteTokenizer())
    texts = [span.text for episode in episodes for agent in episode.agents for span in agent.spans]
    world = make_world(WorldParameters(seed=VOCABULARY_SEED, train=1, dev=1, test=1))
    return pieces([*texts, *(passage.contents for passage in world.passages)])
