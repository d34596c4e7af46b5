"""The passes, one in each file, and the pipelines that run them."""
