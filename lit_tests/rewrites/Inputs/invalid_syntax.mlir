pdl.pattern @p : benefit(1) {
  %x = pdl.operand
