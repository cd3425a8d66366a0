"""On-policy distillation: a teacher says of every sampled token whether it would have liked it more or less."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from searchparty.credit.estimators.base import Estimates, Estimator, Sample, layout_of


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

    def estimate(self, samples: Sequence[Sample]) -> Estimates:
        """See the class."""
        layout = layout_of(samples)
        student_T = [sample.sequence.old_logprobs_T for sample in samples]
        teacher_T = [
            own_T if sample.teacher_logprobs_T is None else sample.teacher_logprobs_T
            for sample, own_T in zip(samples, student_T, strict=True)
        ]
        return Estimates(layout.place(self.coefficient * (layout.collect(teacher_T) - layout.collect(student_T))))
