pdl.pattern @wrong : benefit(1) {
  %x = pdl.operand
  %t = pdl.type
  %root = pdl.operation "ait.neg" (%x : !pdl.value) -> (%t : !pdl.type)
  %n = pdl.attribute = "ScalarLyke" pdl.apply_native_constraint "has_trait"(%root, %n : !pdl.operation, !pdl.attribute)
  pdl.rewrite %root {
    pdl.replace %root with (%x : !pdl.value)
  }
}
