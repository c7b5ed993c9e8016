"""Samples in bins of confidence, the sums over them, and the errors made of the sums."""
