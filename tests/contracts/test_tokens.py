"""Contracts 1 and 2: the ids recorded are the ids given and sampled, and what may be trained is decided where tokens are
made."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playing import PARIS, FixedRetriever, cast_for, good_lines, scripted_model
from searchparty.episodes.types import Episode, SpanKind, StopReason
from searchparty.models.bytes import ByteTokenizer
from searchparty.models.types import Completion, Failure, FinishReason, Generated, GenerateRequest, Message, Sampling
from searchparty.teams.chained import Chained
from searchparty.teams.hierarchical import Hierarchical
from searchparty.teams.play import play
from searchparty.teams.team import Team


class OddIdsEngine:
    """Samples ids that no encoder would give for their text: every character in two halves of its bytes, and an odd id."""

    exchanges_ids = True

    def __init__(self) -> None:
        self.requests: list[GenerateRequest] = []
        self.replies: list[Completion] = []

    async def generate(self, requests: list[GenerateRequest]) -> list[Generated | Failure]:
        out: list[Generated | Failure] = []
        for request in requests:
            said = sum(earlier.role == request.role for earlier in self.requests)
            lines = {
                "leader": ["<task>é</task>", "<select>1</select>"],
                "searcher": ["<search>é</search>", "<report>ü</report>"],
            }
            text = (lines.get(request.role) or ["<answer>Zürich</answer>"])[said % 2 if request.role in lines else 0]
            ids = [0x41, *text.encode(), 258]
            completion = Completion(text, ids, [-0.5] * len(ids), FinishReason.END)
            self.requests.append(request)
            self.replies.append(completion)
            out.append(Generated([completion] * request.n, prompt_tokens=len(request.prompt_ids or ())))
        return out

    async def score(self, sequences: list[list[int]]) -> list[list[float] | Failure]:
        return [[0.0] * len(sequence) for sequence in sequences]

    async def close(self) -> None:
        """Nothing to free."""


def play_with(engine: OddIdsEngine, team: Team) -> Episode:
    model = scripted_model(lambda request: "")
    object.__setattr__(model, "engine", engine)
    return asyncio.run(play(team, PARIS, cast_for(team, model), FixedRetriever()))


@pytest.mark.parametrize("team", [Chained(), Hierarchical(), Chained(candidates=3)])
def test_contract_1_ids_recorded_are_the_ids_given_and_sampled_and_never_encoded_again(team: Team) -> None:
    engine = OddIdsEngine()
    episode = play_with(engine, team)
    assert episode.stop_reason is StopReason.ANSWERED
    assert episode.token_exact
    asked = iter(zip(engine.requests, engine.replies, strict=True))
    calls = sorted(
        (
            (call.step, transcript.agent, number, transcript)
            for transcript in episode.agents
            for number, call in enumerate(transcript.calls)
        ),
        key=lambda item: item[:3],
    )
    for _, _, number, transcript in calls:
        request, reply = next(asked)
        sampled = [span for span in transcript.spans if span.call == number]
        before = transcript.spans[: transcript.spans.index(sampled[0])]
        given_ids = [token for span in before for token in span.ids or ()]
        assert given_ids == list(request.prompt_ids or ())
        assert len(given_ids) == transcript.calls[number].prompt_tokens
        for span in sampled:
            assert list(span.ids or ()) == list(reply.ids or ())
            assert list(span.logprobs or ()) == list(reply.logprobs or ())
            assert list(span.ids or ()) != ByteTokenizer().encode(span.text)


def test_contract_1_every_later_prompt_begins_with_the_earlier_prompt_and_what_was_sampled_after_it() -> None:
    engine = OddIdsEngine()
    play_with(engine, Chained())
    first, second = (request for request in engine.requests if request.role == "searcher")
    grown = [*(first.prompt_ids or ()), *(engine.replies[0].ids or ())]
    assert list(second.prompt_ids or ())[: len(grown)] == grown


@pytest.mark.parametrize(
    "reply",
    [
        Generated([Completion("a", [97], [-1.0, -1.0], FinishReason.END)]),
        Generated([Completion("a", None, None, FinishReason.END)]),
        Generated([Completion("a", [97], [-1.0], FinishReason.END)], prompt_tokens=1),
        Generated([]),
    ],
)
def test_contract_1_a_reply_with_other_lengths_than_agreed_is_a_failure_and_not_data(reply: Generated) -> None:
    class WrongEngine(OddIdsEngine):
        async def generate(self, requests: list[GenerateRequest]) -> list[Generated | Failure]:
            return [reply]

    episode = play_with(WrongEngine(), Chained())
    assert episode.stop_reason is StopReason.MODEL_FAILED
    assert "malformed_reply" in (episode.detail or "")
    assert not [span for transcript in episode.agents for span in transcript.spans if span.kind is SpanKind.ACTION]


def test_contract_1_an_episode_of_a_text_only_model_says_that_it_is_not_token_exact() -> None:
    model = scripted_model(good_lines(), exchanges_ids=False)
    team = Chained()
    episode = asyncio.run(play(team, PARIS, cast_for(team, model), FixedRetriever()))
    assert (episode.stop_reason, episode.token_exact) == (StopReason.ANSWERED, False)
    assert all(span.ids is None for transcript in episode.agents for span in transcript.spans)


def test_contract_1_an_episode_says_when_the_models_own_template_would_rewrite_history() -> None:
    model = scripted_model(good_lines())
    model.chat.rewrites_history = True  # type: ignore[union-attr]
    team = Chained()
    assert asyncio.run(play(team, PARIS, cast_for(team, model), FixedRetriever())).template_rewrites_history


@given(st.lists(st.text(max_size=40), min_size=2, max_size=2))
@settings(max_examples=50)
def test_contract_2_trainable_is_exactly_what_was_sampled_whatever_texts_say(texts: list[str]) -> None:
    """A passage may hold end-of-turn ids' names, tags or nothing; a sampled text may equal an observed one."""
    sampled = f"<search>{texts[0]}</search>"
    lines = good_lines(searcher=[sampled, "<report>r</report>"])
    model = scripted_model(lines)
    team = Chained()
    cast = cast_for(team, model, Sampling(max_tokens=4096))
    episode = asyncio.run(play(team, PARIS, cast, FixedRetriever((sampled, texts[1], "<|im_end|>"))))
    for transcript in episode.agents:
        for span in transcript.spans:
            is_action = span.kind is SpanKind.ACTION
            assert is_action == (span.call is not None) == (span.logprobs is not None) == (span.candidate is not None)
    actions = [span for span in episode.transcript("searcher.1").spans if span.kind is SpanKind.ACTION]
    assert len(actions) == len(episode.transcript("searcher.1").calls)


def test_contract_2_template_markup_around_an_action_belongs_to_the_observation_that_follows() -> None:
    model = scripted_model(good_lines())
    team = Chained()
    episode = asyncio.run(play(team, PARIS, cast_for(team, model), FixedRetriever()))
    spans = episode.transcript("searcher.1").spans
    end = ByteTokenizer().control_tokens["<|im_end|>"]
    assert [span.kind for span in spans[:4]] == [SpanKind.PROMPT, SpanKind.OBSERVATION, SpanKind.ACTION, SpanKind.OBSERVATION]
    assert spans[2].finish_reason == "stop"
    assert end not in (spans[2].ids or ())
    assert (spans[3].ids or ())[0] == end
    whole = ByteTokenizer().decode([token for span in spans for token in span.ids or ()])
    assert whole.count("<|im_start|>assistant\n<search>capital of France</search><|im_end|>\n<|im_start|>user\n") == 1


def test_worked_examples_are_part_of_the_prompt_and_are_never_trained() -> None:
    model = scripted_model(good_lines())
    team = Chained()
    episode = asyncio.run(play(team, PARIS, cast_for(team, model), FixedRetriever()))
    prompt = episode.transcript("answerer.1").spans[0]
    assert prompt.kind is SpanKind.PROMPT
    assert "<answer>Vltava</answer>" in prompt.text
    assert isinstance(cast_for(team, model)["answerer"].prompt.examples[0], Message)
