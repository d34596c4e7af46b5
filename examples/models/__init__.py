"""Networks of `ait_mlir.frontend.nn` layers; their parameters have the names of the published checkpoints."""
