"""An LLM's opinion of answers, as a column beside the score and never in its place."""
