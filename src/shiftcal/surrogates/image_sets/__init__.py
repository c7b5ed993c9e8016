"""Surrogate sets of images on disk: a folder or an array in, its corrupted copies out.

Work that was broken off is completed by the same call, and the result is the same to the byte.
"""

from shiftcal.surrogates.image_sets.job import Job, Outcome, corrupt_files

__all__ = ["Job", "Outcome", "corrupt_files"]
