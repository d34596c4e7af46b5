// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/invalid_constraint.mlir"}' 2>&1 | filecheck %s --check-prefix=CONSTRAINT
// CONSTRAINT: invalid_constraint.mlir:5:3: error: unknown constraint 'only_use'; did you mean 'only_user'
// CONSTRAINT-NEXT: pdl.apply_native_constraint "only_use"
// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/invalid_arguments.mlir"}' 2>&1 | filecheck %s --check-prefix=ARGUMENTS
// ARGUMENTS: invalid_arguments.mlir:5:3: error: constraint 'only_user' takes (value, operation), got (value)
// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/invalid_trait.mlir"}' 2>&1 | filecheck %s --check-prefix=TRAIT
// TRAIT: invalid_trait.mlir:5:37: error: unknown trait 'ScalarLyke'; did you mean 'ScalarLike'?
// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/invalid_operation.mlir"}' 2>&1 | filecheck %s --check-prefix=OPERATION
// OPERATION: invalid_operation.mlir:4:3: error: unknown operation 'ait.negate'
// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/invalid_native.mlir"}' 2>&1 | filecheck %s --check-prefix=NATIVE
// NATIVE: invalid_native.mlir:7:5: error: unknown native rewrite 'append_to_epilog'; did you mean 'append_to_epilogue'
// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/invalid_new.mlir"}' 2>&1 | filecheck %s --check-prefix=NEW
// NEW: invalid_new.mlir:7:5: error: unknown operation 'os.system'
// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/invalid_empty.mlir"}' 2>&1 | filecheck %s --check-prefix=EMPTY
// EMPTY: invalid_empty.mlir:6:3: error: the rewrite does nothing; replace or erase the root
// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/invalid_runaway.mlir"}' 2>&1 | filecheck %s --check-prefix=RUNAWAY
// RUNAWAY: error: pass 'apply-patterns': pattern 'wrong' was applied {{.*}} and does not come to an end; does it match what it writes?
// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/invalid_misuse.mlir"}' 2>&1 | filecheck %s --check-prefix=MISUSE
// MISUSE: apply_patterns_invalid.mlir:[[#]]:3: error: pass 'apply-patterns': pattern 'wrong' cannot be applied to 'ait.neg': native rewrite 'append_to_epilogue' needs HasEpilogue, got 'ait.neg'
// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/invalid_broken.mlir"}' 2>&1 | filecheck %s --check-prefix=BROKEN
// BROKEN: apply_patterns_invalid.mlir:[[#]]:3: error: after pass 'apply-patterns': {{.*}}dim
// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/invalid_no_pattern.mlir"}' 2>&1 | filecheck %s --check-prefix=OTHER
// OTHER: invalid_no_pattern.mlir:1:1: error: a pattern file holds pdl.pattern operations, found 'ait.graph'
// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/invalid_syntax.mlir"}' 2>&1 | filecheck %s --check-prefix=SYNTAX
// SYNTAX: invalid_syntax.mlir:{{.*}}: error:
// RUN: not ait-opt %s -p 'apply-patterns{file="%S/Inputs/there_is_none.mlir"}' 2>&1 | filecheck %s --check-prefix=MISSING
// MISSING: there_is_none.mlir:1:1: error: cannot read the pattern file: No such file or directory
// RUN: not ait-opt %s -p 'apply-patterns' 2>&1 | filecheck %s --check-prefix=OPTION
// OPTION: error: wrong options for pass 'apply-patterns': apply-patterns requires argument "file"

ait.graph @f(%x: !ait.tensor<4 x f32>) {
  %0 = ait.neg %x : !ait.tensor<4 x f32>
  ait.output "y" %0 : !ait.tensor<4 x f32>
}
