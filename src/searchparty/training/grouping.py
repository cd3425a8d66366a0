"""The group in which a sequence was compared, as text: written beside the signals and checked by the audit (contract 5)."""

from __future__ import annotations

from searchparty.credit.estimators.group_relative import GroupRelative
from searchparty.credit.plan import RoleCredit
from searchparty.credit.types import SequenceKey


def group_name(credit: RoleCredit, key: SequenceKey, call: int) -> str:
    """`episodes of QUESTION`, `candidates of QUESTION sample S AGENT call C`, or nothing for a role that compares nothing."""
    estimator = credit.estimator
    if not isinstance(estimator, GroupRelative):
        return ""
    if estimator.compare == "episodes":
        return f"episodes of {key.question_key}"
    return f"candidates of {key.question_key} sample {key.sample} {key.agent} call {call}"
