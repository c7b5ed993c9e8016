"""Figures: what was made or measured in, a picture out."""
