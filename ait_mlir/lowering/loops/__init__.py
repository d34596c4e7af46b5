"""The generator of loops: `ait.loops` as C++ for CPU, CUDA and HIP, by a schedule."""
