"""What the study of few target rows computes and shows."""
