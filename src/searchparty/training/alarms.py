"""When a run must not go on in silence (contract 9): what credit and learner found, and shares that jump.

Knows numbers and a recipe's settings; prints and stops nothing itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from searchparty.credit.findings import Finding, FindingKind
from searchparty.training.recipe import Action, AlarmSpec

_CLASSES: Mapping[FindingKind, str] = {
    FindingKind.NO_TRAINABLE_TOKENS: "silence",
    FindingKind.NOTHING_SCORED: "silence",
    FindingKind.NON_FINITE: "non_finite",
    FindingKind.ONLY_SINGLETONS: "no_signal",
    FindingKind.NO_ADVANTAGE: "no_signal",
    FindingKind.PARTLY_SCORED: "no_signal",
    FindingKind.ALTERED_SAMPLING: "no_signal",
    FindingKind.EPISODES_SET_ASIDE: "no_signal",
}


@dataclass(frozen=True, slots=True)
class Alarm:
    """One thing that a person should hear of."""

    name: str
    """Its key under `alarms` in the recipe."""
    action: Action
    detail: str

    def __str__(self) -> str:
        return f"{self.name}: {self.detail}"


class Alarms:
    """Watches one stage. Its memory is what the metrics of earlier steps say, so a resumed run watches on as before."""

    def __init__(self, spec: AlarmSpec) -> None:
        self._spec = spec
        self._shares: dict[str, deque[float]] = {}

    def remember(self, shares: Mapping[str, float]) -> None:
        """Take in the shares of a step that was finished earlier."""
        for name, share in shares.items():
            self._shares.setdefault(name, deque(maxlen=self._spec.window)).append(share)

    def of_findings(self, findings: Sequence[Finding]) -> list[Alarm]:
        """The alarms that are known before the update: what credit found, and a judge."""
        named = [(_CLASSES[finding.kind], finding) for finding in findings]
        alarms = [Alarm(name, getattr(self._spec, name), str(finding)) for name, finding in named]
        return [alarm for alarm in alarms if alarm.action != "ignore"]

    def hear(
        self, findings: Sequence[Finding], shares: Mapping[str, float], mismatch: Mapping[str, float | None]
    ) -> list[Alarm]:
        """The alarms of one step.

        Args:
            shares: name to a share of episodes or turns that should not jump, such as those without a search.
            mismatch: role to the mean difference of log-probability between sampler and learner.
        """
        alarms = self.of_findings(findings)
        for name, share in shares.items():
            before = self._shares.get(name)
            if before:
                usual = sum(before) / len(before)
                if share - usual > self._spec.jump_by:
                    detail = f"{name} rose to {share:.0%}, from {usual:.0%} over the last {len(before)} steps"
                    alarms.append(Alarm("jump", self._spec.jump, detail))
        for role, difference in mismatch.items():
            if difference is not None and difference > self._spec.mismatch_above:
                detail = (
                    f"{role}: sampler and learner differ by {difference:.3f} nats a token; does the sampler have the weights?"
                )
                alarms.append(Alarm("mismatch", self._spec.mismatch, detail))
        self.remember(shares)
        return [alarm for alarm in alarms if alarm.action != "ignore"]
