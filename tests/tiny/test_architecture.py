import torch

from searchparty.tiny.architecture import SYLLABLE_LIKENESS, Shape, new_model
from searchparty.tiny.tokenizer import build_tokenizer

WORDS = [" the", " film", " of"]


def test_a_syllable_begins_like_itself_after_a_blank_and_unlike_others() -> None:
    tokenizer = build_tokenizer(WORDS)
    vectors = new_model(tokenizer, Shape(), seed=1).get_input_embeddings().weight.detach()
    bare, spaced, other = (vectors[tokenizer.token_to_id(token)] for token in ("sa", "Ġsa", "Ġbo"))
    assert abs(torch.cosine_similarity(bare, spaced, dim=0) - SYLLABLE_LIKENESS) < 0.2
    assert abs(torch.cosine_similarity(bare, other, dim=0)) < 0.4


def test_equal_seeds_give_equal_weights_and_others_do_not() -> None:
    tokenizer = build_tokenizer(WORDS)
    one, same, other = (new_model(tokenizer, Shape(), seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["model.layers.2.mlp.up_proj.weight"], other["model.layers.2.mlp.up_proj.weight"])
