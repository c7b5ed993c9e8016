"""Curves on the confidence of the predicted class, and rows made of them."""
