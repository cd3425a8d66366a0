"""Estimators: from what a role's sequences earned, or what a teacher thinks of them, to an advantage per token."""
