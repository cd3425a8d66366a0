"""How two answers are brought to one form before they are compared. Knows strings only: no scores, no questions.

Two normalisers are in use. They differ in what becomes of punctuation, and that alone decides cases such as `Spider-Man`
against `Spider Man` or `1,000` against `1000`. Neither folds accents, number words, dashes other than ASCII's or full-width
digits.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache

_ARTICLE = re.compile(r"\b(a|an|the)\b")
_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SPACE_FOR_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))

_REMEMBERED = 20_000
"""Results kept per normaliser: golden answers, often dozens to a question, return with every sample and every score."""


@lru_cache(_REMEMBERED)
def normalise_answer(text: str) -> str:
    """Lower case, ASCII punctuation deleted, articles and surplus white space removed, in this order.

    Source: the SQuAD v1.1 evaluation script; those of HotpotQA, 2WikiMultiHopQA and MuSiQue carry the same function. The result
    can be empty although the text is not (`The`, `---`, `!!!`).
    """
    return _without_articles(text.lower().translate(_DELETE_PUNCTUATION))


@lru_cache(_REMEMBERED)
def normalise_triviaqa(text: str) -> str:
    """As `normalise_answer`, but punctuation, and four quotation marks outside ASCII, becomes a space instead of vanishing.

    Source: the TriviaQA evaluation script.
    """
    return _without_articles(text.lower().translate(_SPACE_FOR_PUNCTUATION))


def _without_articles(text: str) -> str:
    return " ".join(_ARTICLE.sub(" ", text).split())
