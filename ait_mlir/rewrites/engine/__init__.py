"""The pattern language (`language`), its compiler (`compile`), the worklist driver (`driver`) and the two closed
registries a pattern may name: constraints (`constraints`) and native rewrites (`natives`)."""
