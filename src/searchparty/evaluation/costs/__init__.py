"""What the episodes of a run cost and were worth, workflow by workflow."""
