"""Names of constants that the compiler adds to those of a model. No heavy imports: the runtime reads this."""

LITERAL = "$literal."
"""The prefix of numbers in the IR; no param can have such a name."""
FOLDED = "folded."
"""The prefix of values that are computed from params once."""
COMPUTED = "folded..constant"
"""The prefix of values that are computed from constants alone."""
