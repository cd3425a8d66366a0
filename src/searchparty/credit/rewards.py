"""What an episode is worth to a role: the named parts of its reward, each by itself.

Reads records of what happened; reads no text. Whether an answer is right comes from outside as a number per candidate, judged
where answers are extracted. How the parts are weighed is in `reward_mix`.

Symbols after MultiAgent-OPD: episode i, candidate j of its answer call, c_ij whether that candidate is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from searchparty.credit.layout import Layout
from searchparty.credit.types import FloatArray
from searchparty.episodes.types import AgentEnd, Episode, Transcript

ASSIGNMENT_CAP = 6
"""Environment steps with a search beyond which more of them earn nothing."""


class JudgedCandidate(Protocol):
    """One candidate of the answer call, as evaluation scores it."""

    @property
    def exact_match(self) -> float:
        """c_ij: 1.0 if it is right, else 0.0."""

    @property
    def f1(self) -> float:
        """Its token F1 with the golden answer that it is nearest to."""

    @property
    def problem(self) -> str | None:
        """Why it holds no well-formed answer; None if it holds one."""


def exact_match(candidates: Sequence[JudgedCandidate], candidate: int) -> float:
    """c_ij of one candidate: the Answerer's reward. 0.0 if nothing was judged, because the last call gave no answer."""
    return float(candidates[candidate].exact_match) if candidates else 0.0


def answer_f1(candidates: Sequence[JudgedCandidate], candidate: int) -> float:
    """Token F1 of one candidate with the golden answer that it is nearest to. 0.0 if nothing was judged."""
    return float(candidates[candidate].f1) if candidates else 0.0


def team_result(candidates: Sequence[JudgedCandidate]) -> float:
    """R_EM,i = max_j c_ij: 1.0 if at least one candidate is right. 0.0 if nobody answered."""
    return max((float(one.exact_match) for one in candidates), default=0.0)


def behaviour(episode: Episode, transcript: Transcript) -> float:
    """b of one Searcher: 0.5 if it searched exactly once and then reported, 1.0 if twice or more, else 0.0.

    A Searcher has reported if its part ended as FINISHED.
    """
    if transcript.end is not AgentEnd.FINISHED:
        return 0.0
    searches = sum(retrieval.agent == transcript.agent for retrieval in episode.retrievals)
    return (0.0, 0.5, 1.0)[min(searches, 2)]


def assignment(episode: Episode, searching_role: str) -> float:
    """R_assign,i = min(C_i, 6) / 6, where C_i counts environment steps in which at least one Searcher searched.

    Searchers that search in the same step count once.
    """
    searchers = {transcript.agent for transcript in episode.agents if transcript.role == searching_role}
    steps = {retrieval.step for retrieval in episode.retrievals if retrieval.agent in searchers}
    return min(len(steps), ASSIGNMENT_CAP) / ASSIGNMENT_CAP


def is_well_formed(episode: Episode, transcript: Transcript, candidates: Sequence[JudgedCandidate], candidate: int) -> bool:
    """Whether an agent's last turn holds a well-formed action.

    For the answering agent each candidate is judged by itself. Any other agent goes by the problem recorded for its turn,
    which is that of its first candidate; so does an answering agent whose last call failed, which has no candidates.
    """
    if transcript.agent == episode.answering_agent and candidates:
        return candidates[candidate].problem is None
    return transcript.problem is None


def divergences_from(old_logprobs_N: FloatArray, logprobs_N: FloatArray, layout: Layout) -> NDArray[np.float64]:
    """Σ_t (log π_old(a_t|h_t) − log π(a_t|h_t)) over the trainable tokens of each sequence [S]; π: teacher or reference.

    Its expectation under the sampling policy is KL(π_old ‖ π) of the whole sampled text, hence a sum and not a mean. One
    sample of it may be negative. Multiplied by a coefficient and subtracted, it is the KL penalty inside the reward.
    Source: Ouyang et al. 2022, Training language models to follow instructions with human feedback, objective (2).
    """
    sums = [ratio_K.sum(dtype=np.float64) for ratio_K in layout.split(old_logprobs_N - logprobs_N)]
    return np.array(sums, np.float64)


def reference_penalty(old_logprobs_N: FloatArray, reference_logprobs_N: FloatArray, coefficient: float) -> FloatArray:
    """β·(log π_old(a_t|h_t) − log π_ref(a_t|h_t)) at every trainable token [N].

    What a token loses at once. The sequence's reward stands apart, at its last token. Source: MAO-ARAG, equation (9), after
    Ouyang et al. 2022.
    """
    return coefficient * (old_logprobs_N - reference_logprobs_N)
