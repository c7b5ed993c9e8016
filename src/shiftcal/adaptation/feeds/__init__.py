"""Feeds: which inputs an iteration trains on, a function of the seed and its number."""
