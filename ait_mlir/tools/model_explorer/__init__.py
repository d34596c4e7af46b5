"""An extension of Model Explorer, which loads `AitAdapter` from `main.py`."""
