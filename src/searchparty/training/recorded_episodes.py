"""Episodes that were recorded earlier, as something to imitate: where they lie, and whether their ids are the policy's.

Knows files and spans; nothing of how they are learned from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from searchparty.episodes.store import read_episodes
from searchparty.episodes.types import Episode, SpanKind
from searchparty.errors import UserError
from searchparty.models.types import Tokenizer


def episode_files(path: Path) -> list[Path]:
    """The files of episodes that a path means: itself, those of an evaluation's run directory, or of a training stage's folder.

    Raises:
        UserError: there are none.
    """
    if path.is_file():
        return [path]
    found = sorted((path / "episodes").glob("*.jsonl"))
    if not found:
        raise UserError(
            f"episodes: {path}: no recorded episodes; give a file, a run directory of searchparty eval, or RUN/stages/NAME"
        )
    return found


def recorded_episodes(path: Path) -> Iterator[Episode]:
    """All of them, in the order of recording; of two attempts with one question and sample in a file the later counts."""
    for file in episode_files(path):
        yield from {(one.question_key, one.sample): one for one in read_episodes(file, allow_torn_end=True)}.values()


def check_ids(episodes: Sequence[Episode], roles: Collection[str] | None, tokenizer: Tokenizer, path: Path) -> None:
    """Refuse ids of another tokenizer: what was sampled must read in the policy's as it was recorded.

    Raises:
        UserError: naming the first turn that reads otherwise.
    """
    for episode in episodes:
        for transcript in episode.agents:
            if roles is not None and transcript.role not in roles:
                continue
            for span in transcript.spans:
                if span.kind is not SpanKind.ACTION or span.ids is None:
                    continue
                if not _reads(tokenizer, span.ids, span.text):
                    raise UserError(
                        f"episodes: {path}: {episode.question_key}, sample {episode.sample}, {transcript.agent}: its token ids "
                        "do not read as the text that was recorded, so they are of another tokenizer; imitate episodes of a "
                        "model with the policy's"
                    )


def _reads(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> bool:
    """Whether the ids are this text. A completion's text ends before the token that ended it, and at a stop string."""
    try:
        return tokenizer.decode(ids).startswith(text)
    except (IndexError, KeyError, OverflowError, ValueError):
        return False
