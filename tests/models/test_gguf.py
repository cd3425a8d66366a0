import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from gguf import GGMLQuantizationType, GGUFWriter
from gguf.quants import dequantize, quantize
from tiny_models import DATA, backend, random_model

from searchparty.errors import UserError
from searchparty.models.gguf_conversion import LAYER_NAMES, OUTER_NAMES, convert
from searchparty.models.gguf_file import GGUFFile
from searchparty.models.huggingface import load_chat, load_weights
from searchparty.models.model_folders import convert_gguf, model_identity

GGUF_NAMES = {new: old for old, new in {**LAYER_NAMES, **OUTER_NAMES}.items()}


def gguf_name(name: str) -> str:
    *stem, kind = name.removeprefix("model.").split(".")
    if stem[0] != "layers":
        return f"{GGUF_NAMES[name.rsplit('.', 1)[0]]}.{kind}"
    return f"blk.{stem[1]}.{GGUF_NAMES['.'.join(stem[2:])]}.{kind}"


def pairs_together(weight: np.ndarray[Any, Any], heads: int) -> np.ndarray[Any, Any]:
    """The order of rotary rows that llama models have in GGUF files."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def write(
    path: Path, model: Any, family: str = "smollm", *, change: Callable[[GGUFWriter], None] | None = None, **extra: Any
) -> Path:
    """Write a random model with the tokenizer of a family; `extra` replaces tensors by name."""
    config, kind = model.config, model.config.model_type
    writer = GGUFWriter(path, kind)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    tokenizer = json.loads(backend(family).to_str())
    vocabulary = backend(family).get_vocab()
    tokens = sorted(vocabulary, key=lambda token: vocabulary[token])
    special = {token["content"] for token in tokenizer["added_tokens"]}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(family)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    writer.add_token_merges([" ".join(merge) for merge in tokenizer["model"]["merges"]])
    writer.add_eos_token_id(vocabulary["<|im_end|>"])
    writer.add_chat_template((DATA / "smollm2.jinja").read_text("utf-8"))
    for name, tensor in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        weight = tensor.numpy()
        if kind == "llama" and "self_attn.q_proj" in name:
            weight = pairs_together(weight, config.num_attention_heads)
        if kind == "llama" and "self_attn.k_proj" in name:
            weight = pairs_together(weight, config.num_key_value_heads)
        if gguf_name(name) not in extra:
            writer.add_tensor(gguf_name(name), np.ascontiguousarray(weight))
    for name, (weight, quantisation) in extra.items():
        writer.add_tensor(name, quantize(weight, quantisation), raw_dtype=quantisation)
    if change:
        change(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def converted(source: Path, target: Path) -> Any:
    target.mkdir()
    convert(source, target)
    return load_weights(target, "cpu")


def logits(model: Any) -> torch.Tensor:
    with torch.inference_mode():
        result: torch.Tensor = model(torch.tensor([[5, 6, 7, 8, 9, 10]])).logits
    return result


@pytest.mark.parametrize(("kind", "tied"), [("llama", True), ("llama", False), ("qwen2", False)])
def test_the_converted_model_gives_the_logits_of_the_original(tmp_path: Path, kind: str, tied: bool) -> None:
    original = random_model(kind, tie_word_embeddings=tied, rms_norm_eps=1e-5, vocabulary=vocabulary_size())
    model = converted(write(tmp_path / "m.gguf", original), tmp_path / "m")
    assert torch.equal(logits(model), logits(original))
    assert model.config.rms_norm_eps == 1e-5
    assert model.config.tie_word_embeddings is tied
    assert getattr(model.config, "quantization_config", None) is None
    model.save_pretrained(tmp_path / "again")


def test_an_output_matrix_that_is_the_embedding_stored_finer_is_tied_to_it(tmp_path: Path) -> None:
    original = random_model("qwen2", vocabulary=vocabulary_size())
    embedding = original.model.embed_tokens.weight.detach().numpy()
    coarse, fine = (embedding, GGMLQuantizationType.Q4_0), (embedding, GGMLQuantizationType.Q8_0)
    source = write(tmp_path / "m.gguf", original, **{"token_embd.weight": coarse, "output.weight": fine})
    model = converted(source, tmp_path / "m")
    assert model.config.tie_word_embeddings
    expected = dequantize(quantize(embedding, GGMLQuantizationType.Q8_0), GGMLQuantizationType.Q8_0)
    assert np.array_equal(model.model.embed_tokens.weight.detach().numpy(), expected)


def test_the_tokenizer_splits_digits_and_keeps_its_control_tokens_and_template(tmp_path: Path) -> None:
    converted(write(tmp_path / "m.gguf", random_model(vocabulary=vocabulary_size())), tmp_path / "m")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    for text in ("Hello  12 world", "\n\n5", "<|im_start|>user\nhi<|im_end|>", "caf\u00e9 \U0001f600"):
        assert tokenizer(text).input_ids == backend("smollm").encode(text).ids
    chat = load_chat(tmp_path / "m", "tiny")
    assert chat.end_ids == (backend("smollm").token_to_id("<|im_end|>"),)
    assert "SmolLM" in chat.tokenizer.decode(chat.open(""))


def test_a_file_is_converted_once_even_by_several_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = write(tmp_path / "m.gguf", random_model(vocabulary=vocabulary_size()))
    with ThreadPoolExecutor(4) as pool:
        folders = set(pool.map(convert_gguf, [source] * 4))
    (folder,) = folders
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]
    written = (folder / "model.safetensors").stat().st_mtime_ns
    assert convert_gguf(source) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == written


def test_the_identity_follows_the_weights(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
    for folder, seed in zip(folders, (0, 0, 1), strict=True):
        source = write(tmp_path / f"{folder.name}.gguf", random_model(seed=seed, vocabulary=vocabulary_size()))
        folder.mkdir()
        convert(source, folder)
    same, equal, other = map(model_identity, folders)
    assert same == equal != other


@pytest.mark.parametrize("kept", [2, 30, 5000, -100])
def test_a_file_cut_short_is_refused_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    whole = write(tmp_path / "m.gguf", random_model(vocabulary=vocabulary_size())).read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[:kept])
    with pytest.raises(UserError, match=r"cut\.gguf: (not a GGUF|the GGUF file is damaged|the file ends inside)"):
        convert_gguf(tmp_path / "cut.gguf")
    assert not any((tmp_path / "cache" / "searchparty" / "gguf").iterdir())


def test_other_files_and_other_families_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("hello, this is no model at all")
    with pytest.raises(UserError, match="not a GGUF file"):
        GGUFFile(tmp_path / "text.gguf")
    writer = GGUFWriter(tmp_path / "bert.gguf", "bert")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(UserError, match="GGUF models of family bert"):
        convert(tmp_path / "bert.gguf", tmp_path)


def vocabulary_size() -> int:
    return backend("smollm").get_vocab_size()
