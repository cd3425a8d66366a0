"""The real small model, where its package is installed."""

import pytest

from searchparty.errors import UserError
from searchparty.models.loading import load_model
from searchparty.models.smollm2 import find_smollm2
from searchparty.models.types import FinishReason, Generated, GenerateRequest, Sampling

pytestmark = pytest.mark.model


@pytest.fixture(autouse=True)
def installed() -> None:
    try:
        find_smollm2()
    except UserError as error:
        pytest.skip(str(error))


async def test_it_knows_the_capital_of_france_and_scores_what_it_sampled() -> None:
    model = load_model("smollm2", device="cpu")
    assert model.chat is not None and model.context_tokens == 8192 and not model.chat.rewrites_history
    ids = [*model.chat.open(""), *model.chat.user("What is the capital of France?", first=True), *model.chat.begin_action()]
    asked = GenerateRequest([], ids, Sampling(temperature=0.0, max_tokens=30), seed=0)
    drawn = GenerateRequest([], ids, Sampling(max_tokens=30), seed=0, n=4)
    greedy, sampled = await model.engine.generate([asked, drawn])
    assert isinstance(greedy, Generated) and isinstance(sampled, Generated)
    (answer,) = greedy.candidates
    assert (answer.text, answer.finish_reason) == ("The capital of France is Paris.", FinishReason.END)
    completions = [answer, *sampled.candidates]
    scores = await model.engine.score([[*ids, *(c.ids or ())] for c in completions])
    await model.engine.close()
    for completion, score in zip(completions, scores, strict=True):
        assert isinstance(score, list)
        assert score[len(ids) :] == pytest.approx(completion.logprobs, abs=1e-4)
