"""The stages of a run: scoring, evaluating, reporting; each reads what the one before it wrote."""
