"""The cache of compiled kernels."""

from __future__ import annotations

from ait_mlir.host.cache import cache_dir


class KernelCache:
    """Represents the compiled code that graphs share, for scripts that pass a kernel cache.

    Compiled objects are in the cache directory, which all graphs and processes use; loaded libraries are kept by the
    process. A graph therefore shares its kernels with or without a `kernel_cache`.
    """

    @property
    def path(self) -> str:
        """The directory of the compiled objects."""
        return str(cache_dir())

    def __repr__(self) -> str:
        return f"<KernelCache {self.path}>"


def create_kernel_cache() -> KernelCache:
    """A kernel cache for `pygraph(kernel_cache=)`."""
    return KernelCache()
