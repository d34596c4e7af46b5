"""Rewrites of the family `gemm`."""
