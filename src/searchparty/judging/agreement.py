"""How far a judge and exact match say the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counts of episodes by both opinions."""

    both_right: int
    only_judge: int
    """Right for the judge alone: other words for the same thing, or a lenient judge."""
    only_exact_match: int
    """Right by exact match alone: an answer that equals a golden one, so the judge errs."""
    both_wrong: int

    @property
    def episodes(self) -> int:
        """All of them."""
        return self.both_right + self.only_judge + self.only_exact_match + self.both_wrong

    @property
    def share(self) -> float:
        """Share of episodes on which the two agree."""
        return (self.both_right + self.both_wrong) / self.episodes

    @property
    def kappa(self) -> float | None:
        """Agreement beyond chance, 1 for complete agreement (Cohen 1960); None where chance alone would make it complete."""
        by_chance = self._rates()[2]
        return None if by_chance == 1 else (self.share - by_chance) / (1 - by_chance)

    def kappa_value(self, judge: bool, exact: bool) -> float:
        """What an episode with these two opinions adds to kappa, to first order: the mean over all episodes is kappa, and their
        spread is that of kappa (the delta method). Only where kappa is defined.
        """
        kappa = self.kappa
        if kappa is None:
            raise ValueError("kappa is not defined")
        by_judge, by_exact, by_chance = self._rates()
        moved = (judge - by_judge) * (2 * by_exact - 1) + (exact - by_exact) * (2 * by_judge - 1)
        return kappa + ((judge == exact) - self.share - moved * (1 - kappa)) / (1 - by_chance)

    def _rates(self) -> tuple[float, float, float]:
        """Shares that are right for the judge and by exact match, and the agreement that chance alone would make of these."""
        n = self.episodes
        judge, exact = self.both_right + self.only_judge, self.both_right + self.only_exact_match
        return judge / n, exact / n, (judge * exact + (n - judge) * (n - exact)) / n**2


def agreement_of(pairs: Iterable[tuple[bool, bool]]) -> Agreement:
    """Count pairs of what the judge and what exact match says. Raises ValueError without pairs."""
    counts = {(judge, exact): 0 for judge in (True, False) for exact in (True, False)}
    for pair in pairs:
        counts[pair] += 1
    if not any(counts.values()):
        raise ValueError("no episode")
    return Agreement(counts[True, True], counts[True, False], counts[False, True], counts[False, False])
