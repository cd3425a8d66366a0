"""The word `question`. Knows nothing of files."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Question:
    """One question with everything its source said about it.

    Two questions may share a text and still have different golden answers, so nothing is ever keyed by text: `key` is unique in
    a file of questions.
    """

    id: str
    """The source's own id; dataset and row number (`nq_17`, counted from 0) where it has none. Never made from the text."""
    text: str
    """As the source has it: edge spaces, entities and unusual characters are data. Only the quoting of the file's own format is
    undone."""
    golden_answers: tuple[str, ...]
    """Accepted answers; aliases are further entries. Empty if the source gives none (a test split without answers)."""
    dataset: str
    supporting_titles: tuple[str, ...] = ()
    """Titles of the passages that hold the evidence, where the source names them; each title once, in the source's order."""
    supporting_ids: tuple[str, ...] = ()
    """Corpus ids of the same, where all of them are in the corpus at hand."""
    hops: int | None = None
    """Number of reasoning steps; None if the source does not say."""
    type: str | None = None
    """The source's own category, such as `bridge` or `comparison`."""
    split: str | None = None
    """`train`, `dev` or `test`; None if the source does not say."""
    source: str | None = None
    """Where the record was taken from, for attribution."""
    official_id: str | None = None
    """The id in the dataset's original release, where `id` is another one."""
    extra: dict[str, object] = field(default_factory=dict, hash=False, compare=False)
    """Fields of the source that have no place above, kept as they were. Passages that came along with a question are left out:
    they belong to a corpus."""

    @property
    def key(self) -> str:
        """Dataset and id: unique within a file of questions, and the same in every run."""
        return f"{self.dataset}/{self.id}"
