"""The subcommands of `ait`, one a file. Each has `add(subparsers)`, and a `run(options)` that returns the exit code."""
