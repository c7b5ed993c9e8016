"""What images are kept in: an array, files, tables, archives. One file is one kind."""
