"""Softmax of a linear map: the convex problem of vector, matrix and Dirichlet scaling."""
