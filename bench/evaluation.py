"""Time and memory to score 51,713 questions with four answers each, and to draw intervals for them: the sizes of Search-R1.

Answers are made up: golden ones of one to four words, with as many aliases as the sets have; said ones right, partly right or
wrong. Every step is a process of its own. Plain alternatives, each named: SQuAD's rule written down without anything
remembered, a draw of every single question with numpy, and `scipy.stats.bootstrap`.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import string
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from random import Random

import numpy as np
from own_process import apart

from searchparty.episodes.types import Episode, SpanKind
from searchparty.evaluation.intervals import FloatArray, bootstrap_means
from searchparty.evaluation.scorers import SCORERS
from searchparty.evaluation.scoring import score_episode
from searchparty.evaluation.summary import summarise
from searchparty.models.loading import load_model
from searchparty.models.types import Sampling
from searchparty.questions.types import Question
from searchparty.retrieval.types import Hit
from searchparty.teams.cast import Part
from searchparty.teams.chained import Chained
from searchparty.teams.play import play
from searchparty.teams.prompts import built_in_prompt

SIZES = {
    "nq": 3610, "triviaqa": 11313, "popqa": 14267, "hotpotqa": 7405, "2wikimultihopqa": 12576, "musique": 2417,
    "bamboogle": 125,
}  # fmt: skip
ALIASES = {"nq": 2, "triviaqa": 14, "popqa": 3}
SAMPLES, RESAMPLES, SCIPYS = 4, 10_000, 200
WORDS = [first + second for first in ("Mar", "Bel", "Tor", "Al", "San") for second in ("an", "ia", "mouth", "by", "e")]
JUNK = re.compile(r"\b(a|an|the)\b")


@dataclass(frozen=True)
class Asked:
    """One question with what was said to it."""

    dataset: str
    number: int
    golden: list[str]
    said: list[str]


def answers(share: float) -> list[Asked]:
    """The made-up answers of a share of the questions."""
    random, asked = Random(0), []

    def some(most: int) -> str:
        return " ".join(random.choices(WORDS, k=min(1 + int(random.expovariate(0.6)), most)))

    for dataset, size in SIZES.items():
        for number in range(max(1, round(share * size))):
            golden = [f"The {some(4)}" for _ in range(ALIASES.get(dataset, 1))]
            chance = random.betavariate(0.4, 0.6)
            said = [golden[0] if random.random() < chance else some(8) for _ in range(SAMPLES)]
            asked.append(Asked(dataset, number, golden, said))
    return asked


def score(asked: list[Asked]) -> None:
    scorer = SCORERS["squad"]
    for one in asked:
        for said in one.said:
            scorer.exact_match(said, one.golden), scorer.f1(said, one.golden)


def score_plainly(asked: list[Asked]) -> None:
    def words(text: str) -> list[str]:
        return JUNK.sub(" ", "".join(one for one in text.lower() if one not in string.punctuation)).split()

    def overlap(one: list[str], other: list[str]) -> float:
        common = sum((Counter(one) & Counter(other)).values())
        return 2 * common / (len(one) + len(other)) if common else 0.0

    for question in asked:
        for said in question.said:
            max(words(said) == words(golden) for golden in question.golden)
            max(overlap(words(said), words(golden)) for golden in question.golden)


class NoRetriever:
    async def search(self, query: str, k: int) -> list[Hit]:
        return []


def episodes(asked: list[Asked]) -> Iterator[tuple[Episode, Asked]]:
    """Episodes of the chained team with these answers."""
    team, model = Chained(), load_model("scripted:default")
    cast = {role: Part(model, built_in_prompt(name), Sampling(max_tokens=512)) for role, name in team.prompts.items()}
    played = asyncio.run(play(team, Question("0", "Who?", ("x",), "nq"), cast, NoRetriever()))
    answering = played.transcript(played.answering_agent or "")
    others = [agent for agent in played.agents if agent is not answering]
    for one in asked:
        for sample, said in enumerate(one.said):
            spans = [
                replace(span, text=f"<answer>{said}</answer>") if span.kind is SpanKind.ACTION else span
                for span in answering.spans
            ]
            agents = [*others, replace(answering, spans=spans)]
            key = f"{one.dataset}/{one.number}"
            yield replace(played, question_key=key, dataset=one.dataset, sample=sample, agents=agents), one


def summarise_all(asked: list[Asked]) -> None:
    scorer = SCORERS["squad"]
    scored = [score_episode(episode, one.golden, scorer) for episode, one in episodes(asked)]
    summarise(scored, team="chained", model="scripted", scorer="squad", samples=SAMPLES)


def scores(share: float, kind: str) -> dict[str, FloatArray]:
    """The mean score of each question by set, as `kind` has it."""
    scorer, found = SCORERS["squad"], dict[str, list[float]]()
    for one in answers(share):
        by_sample = [scorer.exact_match(said, one.golden) if kind == "em" else scorer.f1(said, one.golden) for said in one.said]
        found.setdefault(one.dataset, []).append(sum(by_sample) / SAMPLES)
    return {name: np.array(values) for name, values in found.items()}


def differences(share: float) -> dict[str, FloatArray]:
    """F1 less the F1 of another system, the next question's in its place."""
    return {name: values_Q - np.roll(values_Q, 1) for name, values_Q in scores(share, "f1").items()}


def draw(values: dict[str, FloatArray]) -> None:
    bootstrap_means(values, resamples=RESAMPLES)


def draw_plainly(values: dict[str, FloatArray]) -> None:
    random = np.random.default_rng(0)
    for values_Q in values.values():
        size = len(values_Q)
        means = [values_Q[random.integers(size, size=size)].mean() for _ in range(RESAMPLES)]
        np.quantile(means, [0.025, 0.975])


def scores_for_scipy(share: float) -> dict[str, FloatArray]:
    import scipy.stats  # noqa: F401  (so that the step does not pay for the import)

    return scores(share, "f1")


def draw_by_scipy(values: dict[str, FloatArray]) -> None:
    from scipy import stats

    for values_Q in values.values():
        stats.bootstrap((values_Q,), np.mean, n_resamples=SCIPYS, batch=SCIPYS, method="percentile")


def nothing(prepared: object) -> None:
    """The memory of what is prepared."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the questions")
    share = parser.parse_args().share
    made = partial(answers, share)
    count = sum(max(1, round(share * size)) for size in SIZES.values())
    print(f"evaluation: {count:,} questions × {SAMPLES} answers; processor time, and peak memory of the step's own process")
    print(apart(made, nothing).line("hold questions and answers, score nothing"))
    plain = apart(made, score_plainly)
    print(plain.line("plain: exact match and F1 by SQuAD's rule, written down"))
    print(apart(made, score).line("exact match and F1", plain))
    print(apart(made, summarise_all).line("all scores of all episodes, table with every interval"))
    print(f"intervals of {len(SIZES)} sets and of the means over them, {RESAMPLES:,} resamples")
    for name, prepare in {
        "exact match": partial(scores, share, "em"),
        "F1": partial(scores, share, "f1"),
        "paired differences of F1": partial(differences, share),
    }.items():
        plain = apart(prepare, draw_plainly)
        print(plain.line("plain: every question drawn with numpy"))
        print(apart(prepare, draw).line(name, plain))
    some = apart(partial(scores_for_scipy, share), draw_by_scipy)
    whole = replace(some, seconds=some.seconds * RESAMPLES / SCIPYS)
    print(whole.line(f"scipy.stats.bootstrap of F1, told from {SCIPYS} resamples"))


if __name__ == "__main__":
    main()
