"""What agents' parts in their episodes were worth: the parts of a role's reward, looked up by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from searchparty.credit.evidence import Evidence
from searchparty.credit.plan import CreditPlan, RoleCredit
from searchparty.credit.planner_rewards import invalid_workflow, planner_cost
from searchparty.credit.reward_mix import RewardArray, RewardMix, Rewards
from searchparty.credit.rewards import (
    JudgedCandidate,
    answer_f1,
    assignment,
    behaviour,
    exact_match,
    is_well_formed,
    team_result,
)
from searchparty.credit.types import SequenceKey
from searchparty.episodes.types import Episode, Transcript


@dataclass(slots=True)
class Worth:
    """What one agent's part in an episode was worth."""

    episode: Episode
    transcript: Transcript
    judged: Sequence[JudgedCandidate]
    plan: CreditPlan
    role: RoleCredit
    evidence: Evidence

    def part(self, part: str, candidate: int) -> float:
        """A part of the reward of one candidate of the agent's last turn."""
        match part:
            case "exact_match":
                answers = self.transcript.agent == self.episode.answering_agent
                return exact_match(self.judged, candidate) if answers else 0.0
            case "team_result":
                return team_result(self.judged)
            case "behaviour":
                return behaviour(self.episode, self.transcript)
            case "assignment":
                return assignment(self.episode, self.plan.searching_role)
            case "f1":
                answers = self.transcript.agent == self.episode.answering_agent
                return answer_f1(self.judged, candidate if answers else 0)
            case "planner_cost":
                return planner_cost(self.episode, self.transcript.agent, self.plan.planner_costs)
            case "invalid_workflow":
                return invalid_workflow(self.episode, self.transcript.agent)
            case _:
                key = SequenceKey(self.episode.question_key, self.episode.sample, self.transcript.agent, candidate)
                return self.evidence.score(part, key, self.transcript)


def rewards_of(
    turns: Sequence[tuple[Worth, int]],
    mix: RewardMix,
    divergence_S: RewardArray | None = None,
    reference_divergence_S: RewardArray | None = None,
) -> Rewards:
    """What a role's sequences earned; of each is given its agent's worth and which candidate of the last turn it is."""
    return mix.mix(
        lambda part: [worth.part(part, candidate) for worth, candidate in turns],
        well_formed=[is_well_formed(worth.episode, worth.transcript, worth.judged, candidate) for worth, candidate in turns],
        divergence_S=divergence_S,
        reference_divergence_S=reference_divergence_S,
    )
