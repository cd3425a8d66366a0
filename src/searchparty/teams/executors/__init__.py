"""Executors: the modules of retrieval-augmented generation that a planner puts together, one small class each."""
