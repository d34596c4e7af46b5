// RUN: ait-opt %s -p 'select{target="cpu"},bufferize' --verify-diagnostics --split-input-file

// expected-error @below {{graph @none has no output, so it would compute nothing; add: ait.output "y" %VALUE : TYPE}}
ait.graph @none(%x: !ait.tensor<8 x f32>) {
  %y = ait.relu %x : !ait.tensor<8 x f32>
}
