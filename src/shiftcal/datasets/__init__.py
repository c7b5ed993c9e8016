"""Data sets: names and paths in, images and labels out."""
