"""One temperature by least likelihood loss or least Brier score: kernels, search, bounds."""
