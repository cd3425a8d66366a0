"""Questions: reading every format in use, writing our own, finding duplicates, and the bundled sample."""

from searchparty.questions.formats.native import write_questions
from searchparty.questions.reading import load_questions, read_questions
from searchparty.questions.sample import sample_corpus, sample_questions
from searchparty.questions.types import Question

__all__ = ["Question", "load_questions", "read_questions", "sample_corpus", "sample_questions", "write_questions"]
