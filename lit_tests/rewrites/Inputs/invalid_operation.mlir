pdl.pattern @wrong : benefit(1) {
  %x = pdl.operand
  %t = pdl.type
  %root = pdl.operation "ait.negate" (%x : !pdl.value) -> (%t : !pdl.type)
  // nothing here
  pdl.rewrite %root {
    pdl.replace %root with (%x : !pdl.value)
  }
}
