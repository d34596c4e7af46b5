pdl.pattern @wrong : benefit(1) {
  %x = pdl.operand
  %t = pdl.type
  %root = pdl.operation "ait.neg" (%x : !pdl.value) -> (%t : !pdl.type)
  // nothing here
  pdl.rewrite %root {
    %n = pdl.operation "ait.softmax" (%x : !pdl.value) -> (%t : !pdl.type) pdl.replace %root with %n
  }
}
