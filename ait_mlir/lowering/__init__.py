"""From `ait_rt` to C++: kernels, printing, building."""
