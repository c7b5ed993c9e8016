"""Arithmetic: pure functions on checked arrays. Nothing here validates, prints or keeps state."""
