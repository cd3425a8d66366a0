"""On-policy distillation: a teacher says of every sampled token whether it would have liked it more or less."""

from __future__ import annotations

from typing import Literal

import numpy as np

from searchparty.credit.estimators.base import Estimates, Estimator, Samples


class Distillation(Estimator):
    """A_t = β · M_t · (log π_T(a_t|h_t) − log π_old(a_t|h_t)), with M_t = 1 at trainable tokens and 0 elsewhere.

    In expectation over the student's own samples it follows the negative gradient of KL(π_θ ‖ π_T), token by token. The
    teacher has scored the same ids after the same history, at the temperature at which they were sampled. It needs no reward
    and no group, so a role learns also where every episode of a question ended alike. A sequence that the teacher did not
    score gets 0.

    Source: MultiAgent-OPD, "Token 级优势计算".
    """

    needs_teacher = True

    name: Literal["distillation"] = "distillation"
    coefficient: float = 0.01
    """β."""

    def estimate(self, samples: Samples) -> Estimates:
        """See the class."""
        if samples.teacher is None:
            return Estimates(np.zeros_like(samples.old_logprobs_N))
        scored_N = np.repeat(samples.teacher.known_S, samples.layout.tokens_S)
        teacher_N = np.where(scored_N, samples.teacher.said_N, samples.old_logprobs_N)
        return Estimates(self.coefficient * (teacher_N - samples.old_logprobs_N))
