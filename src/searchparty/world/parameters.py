"""How large and how difficult a world is. Everything else about it follows from these numbers."""

from __future__ import annotations

from dataclasses import dataclass

from searchparty.errors import UserError

MOST_ENTITIES = 20_000


@dataclass(frozen=True, slots=True)
class WorldParameters:
    """Raises UserError with one line per value that makes no world."""

    seed: int = 0
    entities: int = 600
    """Things that questions may be about, of all kinds together."""
    train: int = 2000
    """Questions to train on."""
    dev: int = 200
    test: int = 400
    hops: tuple[float, float, float, float] = (3, 4, 2, 1)
    """Weights of questions of one, two, three and four hops."""
    comparisons: float = 0.3
    """Share of comparisons (which was first; is it the same) among questions of two and four hops."""
    max_searches: int = 3
    """Questions for which even the expert needs more searches one after another are not asked. The default is what the five
    steps of the chained team allow. With fewer searches than hops, all questions of so many hops are comparisons."""
    distractors: float = 0.5
    """Passages beside the point, per fact: mentions without the fact, strangers with a similar name, and irrelevant ones."""
    paraphrases: int = 3
    """Wordings in use per relation, 1 to 3. With 1 the questions are plain too."""
    facts_per_passage: int = 2
    """Most facts of one passage, 1 to 4."""
    ambiguity: float = 0.25
    """Share of persons with a stage name, which costs a search more, and of films, companies and bands named like a city."""

    def __post_init__(self) -> None:
        """Check every value and report all faults at once."""
        faults = [
            _between("entities", self.entities, 20, MOST_ENTITIES),
            _between("train", self.train, 1, 10_000_000),
            _between("dev", self.dev, 1, 10_000_000),
            _between("test", self.test, 1, 10_000_000),
            _between("comparisons", self.comparisons, 0, 1),
            _between("max_searches", self.max_searches, 1, 8),
            _between("distractors", self.distractors, 0, 20),
            _between("paraphrases", self.paraphrases, 1, 3),
            _between("facts_per_passage", self.facts_per_passage, 1, 4),
            _between("ambiguity", self.ambiguity, 0, 1),
        ]
        if len(self.hops) != 4 or not all(weight >= 0 for weight in self.hops) or not 0 < sum(self.hops) < float("inf"):
            faults.append(f"hops: {self.hops}: four weights are needed, none negative and not all 0, such as 3,4,2,1")
        elif (self.max_searches < 3 and self.hops[2] > 0) or (self.max_searches < 2 and self.hops[3] > 0):
            faults.append(f"max_searches: {self.max_searches} is too few for the hops {self.hops}; raise it or change hops")
        found = [fault for fault in faults if fault]
        if found:
            raise UserError(*found)


def _between(name: str, value: float, least: float, most: float) -> str | None:
    return None if least <= value <= most else f"{name}: {value} is out of range; choose a value from {least} to {most}"
