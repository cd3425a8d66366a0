"""Ready-made plans: both stages of MultiAgent-OPD, and the runs that it is compared with; the planner of MAO-ARAG.

Choices where the first paper is silent: groups are divided by their deviation; an invalid format earns −1 in both stages; the
KL penalty is a sum over tokens; one objective over all roles, in which each episode has one vote. The base teacher ablation is
`MULTIAGENT_OPD` with another teacher. The second paper gives neither γ, λ nor β; here they are 1, 1 and 0.001.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from searchparty.credit.estimators.distillation import Distillation
from searchparty.credit.estimators.fixed import Unsupervised
from searchparty.credit.estimators.gae import GeneralisedAdvantage
from searchparty.credit.estimators.group_relative import GroupRelative
from searchparty.credit.plan import CreditPlan, RoleCredit
from searchparty.credit.reward_mix import RewardMix

TEACHER_KL = 1e-3
"""Coefficient of the KL penalty in the rewards of Leader and Answerer."""

_AMONG_EPISODES = GroupRelative(compare="episodes")
_AMONG_CANDIDATES = GroupRelative(compare="candidates")

_LEADER = RoleCredit(estimator=_AMONG_EPISODES, rewards=RewardMix(team_result=0.9, assignment=0.1, teacher_kl=TEACHER_KL))
_ANSWERER = RoleCredit(estimator=_AMONG_CANDIDATES, rewards=RewardMix(exact_match=1.0, teacher_kl=TEACHER_KL))


def _hierarchical(searcher: RoleCredit) -> CreditPlan:
    """The second stage with another way for the Searcher to learn; Leader and Answerer are the same in all of them."""
    return CreditPlan(roles={"leader": _LEADER, "searcher": searcher, "answerer": _ANSWERER})


CHAINED_RL = CreditPlan(
    roles={
        "searcher": RoleCredit(estimator=_AMONG_EPISODES, rewards=RewardMix(team_result=0.9, behaviour=0.1)),
        "answerer": RoleCredit(estimator=_AMONG_CANDIDATES, rewards=RewardMix(exact_match=1.0)),
    }
)
"""Stage 1, C-MAS + RL: the result becomes the teacher."""

MULTIAGENT_OPD = _hierarchical(RoleCredit(estimator=Distillation(coefficient=0.01)))
"""Stage 2: the Searcher learns token by token from the teacher, Leader and Answerer from outcomes."""

SEARCHER_ON_OUTCOME = _hierarchical(RoleCredit(estimator=_AMONG_EPISODES, rewards=RewardMix(team_result=1.0)))
"""Ablation: the Searcher gets the team's result alone, and so do all Searchers of an episode alike."""

PROMPTED_CRITIC = _hierarchical(RoleCredit(estimator=_AMONG_EPISODES, rewards=RewardMix(given={"judge": 1.0})))
"""Comparison: an LLM judge's score of each report, given from outside under the name `judge`, is the Searcher's reward."""

NO_SEARCHER_SUPERVISION = _hierarchical(RoleCredit(estimator=Unsupervised()))
"""Ablation: nothing is said to the Searcher, which still changes with the parameters that it shares."""

MAO_ARAG = CreditPlan(
    roles={
        "planner": RoleCredit(
            estimator=GeneralisedAdvantage(),
            rewards=RewardMix(f1=1.0, planner_cost=0.0, invalid_workflow=1.0, invalid_format=None, reference_kl=0.001),
        ),
        **{executor: RoleCredit(estimator=Unsupervised()) for executor in ("qds", "qdp", "qr", "ds", "ag", "as")},
    },
)
"""MAO-ARAG: each turn of the planner earns F1 − α·CP − FP; α is `roles.planner.rewards.planner_cost`. Executors are frozen."""

PLANS: Mapping[str, CreditPlan] = MappingProxyType(
    {
        "chained-rl": CHAINED_RL,
        "multiagent-opd": MULTIAGENT_OPD,
        "searcher-on-outcome": SEARCHER_ON_OUTCOME,
        "prompted-critic": PROMPTED_CRITIC,
        "no-searcher-supervision": NO_SEARCHER_SUPERVISION,
        "mao-arag": MAO_ARAG,
    }
)
