"""The pattern language (`language`), its compiler (`compile`), the worklist driver (`driver`), and constraints about
uses, shapes and types (`constraints`). What belongs to one family of ops stands beside its patterns."""
