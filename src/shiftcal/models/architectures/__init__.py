"""Architectures whose published weights come without code. PyTorch is imported when one is made."""
