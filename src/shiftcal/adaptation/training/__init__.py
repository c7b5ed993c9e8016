"""The loop: batches in, checkpoints and a trained network out."""
