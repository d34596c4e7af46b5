"""Plain implementations of the benchmarked models, as a user of each framework would write them."""
