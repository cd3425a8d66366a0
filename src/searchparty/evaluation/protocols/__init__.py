"""Fixed ways of evaluating, so that numbers of different teams mean the same: what is asked, how often, and scored how."""
