"""The pattern language (`language`), its compiler (`compile`), the worklist driver (`driver`), and constraints about
uses, shapes and types (`constraints`). Constraints of one family of ops are in the module of its patterns."""
