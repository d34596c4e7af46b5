"""Text to IR and back, with a place for every error."""
