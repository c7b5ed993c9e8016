"""Plans: what a study is made of, read from TOML and written to it."""
