"""Estimators that look at nothing: the same advantage everywhere, and none."""

from __future__ import annotations

from typing import Literal

import numpy as np

from searchparty.credit.estimators.base import Estimates, Estimator, Samples


class Constant(Estimator):
    """A_t = coefficient at every trainable token.

    With coefficient 1 and one pass over the data, the policy-gradient loss is maximum likelihood of what was sampled: learning
    from episodes that were selected beforehand.
    """

    name: Literal["constant"] = "constant"
    coefficient: float = 1.0

    def estimate(self, samples: Samples) -> Estimates:
        """See the class."""
        return Estimates(np.full_like(samples.old_logprobs_N, self.coefficient))


class Unsupervised(Estimator):
    """No signal: the role's tokens are not in the objective, its entropy bonus included.

    Where roles share parameters the role still changes, because the others move the weights.
    """

    learns = False

    name: Literal["none"] = "none"

    def estimate(self, samples: Samples) -> Estimates:
        """Advantage 0 everywhere."""
        return Estimates(np.zeros_like(samples.old_logprobs_N))
