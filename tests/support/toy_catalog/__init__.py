"""Data sets that nobody published, in the manner of shiftcal.datasets.catalog."""
