"""The passes, one a file, and the pipelines that run them."""
