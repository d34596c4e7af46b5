pdl.pattern @wrong : benefit(1) {
  %x = pdl.operand
  %t = pdl.type
  %root = pdl.operation "ait.neg" (%x : !pdl.value) -> (%t : !pdl.type)
  // nothing here
  pdl.rewrite %root {
    %n = pdl.apply_native_rewrite "append_to_epilogue"(%root, %root : !pdl.operation, !pdl.operation) : !pdl.operation pdl.replace %root with %n
  }
}
