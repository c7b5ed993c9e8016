"""Random changes to training images, as the reference library makes them; one file is one kind."""
