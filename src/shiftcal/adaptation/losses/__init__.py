"""The transfer losses, tensors in and a scalar out."""
