ait.graph @f(%x: !ait.tensor<4 x f32>) { ait.output "y" %x : !ait.tensor<4 x f32> }
