"""Networks by name, from packages that offer many; one file is one package."""
