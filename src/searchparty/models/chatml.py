"""The ChatML format, for tokenizers that have its two control tokens and for models without a template of their own."""

from __future__ import annotations

from searchparty.models.bytes import ByteTokenizer
from searchparty.models.chat import PieceChat, Pieces, Turn
from searchparty.models.types import Tokenizer

CHATML = Pieces(
    system=Turn("<|im_start|>system\n", "<|im_end|>\n"),
    no_system="",
    user=Turn("<|im_start|>user\n", "<|im_end|>\n"),
    assistant=Turn("<|im_start|>assistant\n", "<|im_end|>\n"),
    generation_prompt="<|im_start|>assistant\n",
    end_of_turn="<|im_end|>",
)


class ChatMLChat(PieceChat):
    """ChatML without a default system message; over bytes unless another tokenizer is given."""

    def __init__(self, tokenizer: Tokenizer | None = None) -> None:
        super().__init__("chatml", tokenizer or ByteTokenizer(), CHATML)
