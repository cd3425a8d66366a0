"""Estimators that look at nothing: the same advantage everywhere, and none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from searchparty.credit.estimators.base import Estimates, Estimator, Sample, layout_of


class Constant(Estimator):
    """A_t = coefficient at every trainable token.

    With coefficient 1 and one pass over the data, the policy-gradient loss is maximum likelihood of what was sampled: learning
    from episodes that were selected beforehand.
    """

    name: Literal["constant"] = "constant"
    coefficient: float = 1.0

    def estimate(self, samples: Sequence[Sample]) -> Estimates:
        """See the class."""
        return Estimates(layout_of(samples).spread(np.full(len(samples), self.coefficient)))


class Unsupervised(Estimator):
    """No signal: the role's tokens are not in the objective, its entropy bonus included.

    Where roles share parameters the role still changes, because the others move the weights.
    """

    learns = False

    name: Literal["none"] = "none"

    def estimate(self, samples: Sequence[Sample]) -> Estimates:
        """Advantage 0 everywhere."""
        return Estimates(layout_of(samples).spread(np.zeros(len(samples))))
