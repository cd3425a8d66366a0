"""Finished runs as a report to hand on: one page, and the same tables as Markdown, CSV and LaTeX; and model cards."""
