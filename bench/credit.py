"""Speed of credit: a batch of made-up episodes of the hierarchical team, for every ready-made plan with its roles.

    python bench/credit.py [--questions 400] [--tokens 500] [--candidates 5]

Each question is attempted 5 times by a Leader, three Searchers and an Answerer, whose every candidate is a sequence of its
own. Best of five passes; a pass goes from episodes, as they are read from a file, to signals. Processor seconds, which depend
less on how busy the machine is than seconds do. They still vary by half, so each pass stands beside one of the plain way on the
same episodes: per sequence a list each of ids, mask, log-probabilities, advantages and weights, made into arrays one by one.
The plain way compares nothing and checks nothing; it is only how the same arrays come about without working on many at once.
The third number is the part below which no pass can go while episodes hold lists: every id and log-probability made part of an
array once. Seconds of the system, which are part of the first number, are those of memory that is touched for the first time;
on a virtual machine they can be most of what a pass varies by.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from itertools import chain

import numpy as np

from searchparty.credit.assign import assign_credit
from searchparty.credit.estimators.gae import GeneralisedAdvantage
from searchparty.credit.evidence import Evidence
from searchparty.credit.gathering import sequences_to_score
from searchparty.credit.plan import CreditPlan, RoleCredit
from searchparty.credit.plans import MULTIAGENT_OPD, PLANS
from searchparty.credit.reward_mix import RewardMix
from searchparty.credit.sequences import token_sequences
from searchparty.episodes.types import AgentEnd, Call, Episode, Retrieval, Span, SpanKind, StopReason, Transcript
from searchparty.evaluation.scoring import CandidateScore

SAMPLES, SEARCHERS = 5, 3
ROLES = {"leader", "searcher", "answerer"}
PASSES = 5
ACTION_TOKENS = 60


def made_up_transcript(agent: str, turns: int, candidates: int, tokens: int, random: np.random.Generator) -> Transcript:
    """A history of `turns` turns and about `tokens` tokens, candidates beyond the first not counted."""
    observed = max(1, tokens // turns - ACTION_TOKENS)
    transcript = Transcript(agent, agent.split(".")[0], "made up", end=AgentEnd.FINISHED)
    for turn in range(turns):
        kind = SpanKind.OBSERVATION if turn else SpanKind.PROMPT
        transcript.spans.append(Span(kind, "", random.integers(0, 150_000, observed).tolist()))
        transcript.calls.append(Call(turn + 1, 0, 1, 1.0, 1.0, 0, 512, 0.0))
        for candidate in range(candidates if turn == turns - 1 else 1):
            ids = random.integers(0, 150_000, ACTION_TOKENS).tolist()
            logprobs = (-random.random(ACTION_TOKENS)).tolist()
            transcript.spans.append(Span(SpanKind.ACTION, "", ids, logprobs, turn, candidate, "end"))
    return transcript


def made_up_episode(question: int, sample: int, tokens: int, candidates: int, random: np.random.Generator) -> Episode:
    """One episode in which every Searcher searches twice."""
    searchers = [f"searcher.{number + 1}" for number in range(SEARCHERS)]
    agents = [
        made_up_transcript("leader.1", 2, 1, tokens, random),
        *(made_up_transcript(name, 3, 1, tokens, random) for name in searchers),
        made_up_transcript("answerer.1", 1, candidates, tokens, random),
    ]
    searches = [Retrieval(name, step, "", 3, [], 0.0) for step in (2, 3) for name in searchers]
    return Episode(
        f"made-up/{question}", "made-up", "", sample, 0, "hierarchical", agents, searches, StopReason.ANSWERED, 6, "answerer.1",
        None, True, False, "", 0.0,
    )  # fmt: skip


def plain_way(episodes: list[Episode]) -> list[list[np.ndarray]]:
    """The arrays of every sequence, by way of lists; each token has the same advantage and weight."""
    found = []
    for transcript in (transcript for episode in episodes for transcript in episode.agents):
        candidates = transcript.last_turn()
        history = transcript.spans[: -len(candidates)]
        for candidate in candidates:
            ids, mask, logprobs = [], [], []
            for span in (*history, candidate):
                is_action = span is candidate or (span.kind is SpanKind.ACTION and candidate.candidate == 0)
                ids += span.ids
                mask += [is_action] * len(span.ids)
                logprobs += span.logprobs if is_action else [0.0] * len(span.ids)
            advantages, weights = [0.5 if flag else 0.0 for flag in mask], [1e-6 if flag else 0.0 for flag in mask]
            numbers = [np.array(one, np.float32) for one in (logprobs, advantages, weights)]
            found.append([np.array(ids, np.int32), np.array(mask, np.bool_), *numbers])
    return found


def conversion(episodes: list[Episode]) -> tuple[np.ndarray, np.ndarray]:
    """All ids and log-probabilities as one array each."""
    spans = [span for episode in episodes for transcript in episode.agents for span in transcript.spans]
    ids = np.fromiter(chain.from_iterable(span.ids for span in spans), np.int32)
    return ids, np.fromiter(chain.from_iterable(span.logprobs or () for span in spans), np.float32)


def processor_seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Of one call: all, and those of the system alone."""
    before = os.times()
    work()
    after = os.times()
    system = after.system - before.system
    return after.user - before.user + system, system


def main() -> None:
    """Print seconds per plan."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=400, help="questions in the batch")
    parser.add_argument("--tokens", type=int, default=500, help="tokens of a history")
    parser.add_argument("--candidates", type=int, default=5, help="candidates of an answer call")
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    episodes = [
        made_up_episode(question, sample, arguments.tokens, arguments.candidates, random)
        for question in range(arguments.questions)
        for sample in range(SAMPLES)
    ]
    sequences = [sequence for episode in episodes for sequence in token_sequences(episode)]
    teacher = {
        sequence.key: sequence.old_logprobs_T - np.float32(0.1)
        for sequence in sequences_to_score(episodes, MULTIAGENT_OPD, lambda role: role.needs_teacher)
    }
    evidence = Evidence(
        candidates={
            (episode.question_key, episode.sample): [
                CandidateScore("", None, float(random.integers(2)), 0.0) for _ in range(arguments.candidates)
            ]
            for episode in episodes
        },
        teacher_logprobs=teacher,
        values={sequence.key: np.zeros(len(sequence.ids_T), dtype=np.float32) for sequence in sequences},
        scores={"judge": {sequence.key: float(random.random()) for sequence in sequences}},
    )
    gae = RoleCredit(estimator=GeneralisedAdvantage(), rewards=RewardMix(team_result=1.0))
    plans = {**PLANS, "gae for all": CreditPlan(roles=dict.fromkeys(("leader", "searcher", "answerer"), gae))}
    transcripts = sum(len(episode.agents) for episode in episodes)
    tokens = sum(len(sequence.ids_T) for sequence in sequences)
    print(f"{len(episodes)} episodes, {transcripts} transcripts, {len(sequences)} sequences, {tokens / 1e6:.1f} million tokens")
    for name, plan in plans.items():
        if set(plan.roles) != ROLES:
            continue
        works = [partial(assign_credit, episodes, plan, evidence), partial(plain_way, episodes), partial(conversion, episodes)]
        passes = [[processor_seconds(work) for work in works] for _ in range(PASSES)]
        (seconds, system), (plain, _), (floor, _) = (
            [part / transcripts * 10_000 for part in min(column)] for column in zip(*passes, strict=True)
        )
        print(
            f"{name:<24}{seconds:6.2f} processor s per 10,000 transcripts, {system:.2f} of the system; "
            f"plain lists {plain:.2f} ({plain / seconds:.1f} x); conversion alone {floor:.2f}"
        )


if __name__ == "__main__":
    main()
