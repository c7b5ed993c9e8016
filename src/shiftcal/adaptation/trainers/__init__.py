"""Trainers: one file is one, found by its file name."""
