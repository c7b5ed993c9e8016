"""What the study ``ablation`` asks, and how the answers are shown."""
