"""The documentation; `docs.site` and `docs.playground` build it as pages."""
