"""Statistics of scores that add up, so that rows never have to meet in one place."""
