"""Cells that count confidences of any number of rows, and what can be said from them."""
