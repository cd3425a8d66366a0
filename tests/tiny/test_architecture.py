import torch

from searchparty.tiny.architecture import Shape, new_model
from searchparty.tiny.tokenizer import build_tokenizer

WORDS = [" the", " film", " of"]


def attention_to_copies(seed: int) -> tuple[float, float]:
    """In a history whose second half repeats the first: attention of the copying head, at the second half, to the places that
    follow the current token's first occurrence; and what an even attention would be."""
    tokenizer = build_tokenizer(WORDS)
    model = new_model(tokenizer, Shape(), seed)
    half = torch.randperm(400, generator=torch.Generator().manual_seed(seed))[:60] + 40
    model.set_attn_implementation("eager")
    with torch.no_grad():
        attention = model(torch.cat([half, half])[None], output_attentions=True).attentions[1][0, 0]
    places = torch.arange(60, 119)
    return float(attention[places, places - 59].mean()), 1 / 60


def test_new_weights_attend_to_what_followed_the_same_token_before() -> None:
    copies, by_chance = attention_to_copies(seed=1)
    assert copies > 10 * by_chance


def test_equal_seeds_give_equal_weights_and_others_do_not() -> None:
    tokenizer = build_tokenizer(WORDS)
    one, same, other = (new_model(tokenizer, Shape(), seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["model.layers.2.mlp.up_proj.weight"], other["model.layers.2.mlp.up_proj.weight"])
