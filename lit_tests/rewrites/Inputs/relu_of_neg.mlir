// relu(-x) twice gives one exp; what it means does not matter here
pdl.pattern @relu_of_neg : benefit(1) {
  %x = pdl.operand
  %t = pdl.type
  %neg = pdl.operation "ait.neg" (%x : !pdl.value) -> (%t : !pdl.type)
  %v = pdl.result 0 of %neg
  %root = pdl.operation "ait.relu" (%v : !pdl.value) -> (%t : !pdl.type)
  pdl.apply_native_constraint "one_use"(%v : !pdl.value)
  pdl.rewrite %root {
    %new = pdl.operation "ait.exp" (%x : !pdl.value) -> (%t : !pdl.type)
    pdl.replace %root with %new
  }
}

// any elementwise operation that a gemm feeds, by trait; our own native rewrite; the result type is inferred
pdl.pattern @join : benefit(2) {
  %operands = pdl.operands
  %t = pdl.type
  %acc = pdl.operation (%operands : !pdl.range<value>) -> (%t : !pdl.type)
  %contraction = pdl.attribute = "HasEpilogue"
  pdl.apply_native_constraint "has_trait"(%acc, %contraction : !pdl.operation, !pdl.attribute)
  %v = pdl.result 0 of %acc
  %root = pdl.operation "ait.tanh" (%v : !pdl.value) -> (%t : !pdl.type)
  pdl.apply_native_constraint "only_user"(%v, %root : !pdl.value, !pdl.operation)
  pdl.rewrite %root {
    %new = pdl.apply_native_rewrite "append_to_epilogue"(%acc, %root : !pdl.operation, !pdl.operation) : !pdl.operation
    pdl.replace %root with %new
  }
}

// not where the operand is an output
pdl.pattern @inferred : benefit(1) {
  %x = pdl.operand
  %t = pdl.type
  %root = pdl.operation "ait.log" (%x : !pdl.value) -> (%t : !pdl.type)
  pdl.apply_native_constraint "not_output"(%x : !pdl.value)
  pdl.rewrite %root {
    %new = pdl.operation "ait.add" (%x, %x : !pdl.value, !pdl.value)
    %sum = pdl.result 0 of %new
    pdl.replace %root with (%sum : !pdl.value)
  }
}
