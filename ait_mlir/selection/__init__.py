"""Chooses the kernels of every op by time: candidates, measured and estimated times, the choice."""
