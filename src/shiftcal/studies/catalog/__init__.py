"""The studies: one file is one study, found by its file name."""
