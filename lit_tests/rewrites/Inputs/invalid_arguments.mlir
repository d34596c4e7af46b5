pdl.pattern @wrong : benefit(1) {
  %x = pdl.operand
  %t = pdl.type
  %root = pdl.operation "ait.neg" (%x : !pdl.value) -> (%t : !pdl.type)
  pdl.apply_native_constraint "only_user"(%x : !pdl.value)
  pdl.rewrite %root {
    pdl.replace %root with (%x : !pdl.value)
  }
}
