"""The studies: one file is one study."""
