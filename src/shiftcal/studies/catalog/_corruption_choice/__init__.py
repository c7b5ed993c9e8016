"""What the study of the calibration corruption computes and shows."""
