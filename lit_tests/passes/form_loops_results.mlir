// RUN: ait-opt %s -p 'form-loops{target="cuda" arch="sm_90a"}' --check-semantics | filecheck %s

// One launch also stores what others use of the values that it needs.

// A norm, the scale of each row, and the row in 8 bits.
// CHECK-LABEL: ait.graph @norm_and_numbers
ait.graph @norm_and_numbers(%x: !ait.tensor<b x s x 256 x f16>, %w: !ait.tensor<256 x f16>) dims {b = 0 to 4, s = 1 to 16} {
  // CHECK: %q, %s = ait.loops(%x, %w) for (d0 = b, d1 = s, d2 = 256) {
  // CHECK: } : !ait.tensor<b x s x 256 x f8E4M3FN>, !ait.tensor<b x s x 1 x f32>
  // CHECK-NEXT: ait.output
  %n = ait.rms_norm %x scale %w axes 1 eps 1e-05 : !ait.tensor<b x s x 256 x f16>
  %v = ait.cast %n : !ait.tensor<b x s x 256 x f32>
  %a = ait.abs %v : !ait.tensor<b x s x 256 x f32>
  %m = ait.reduce max %a dims [2] : !ait.tensor<b x s x f32>
  %k = ait.reshape %m : !ait.tensor<b x s x 1 x f32>
  %c = ait.constant 0.0078740157480315 : !ait.tensor<f32>
  %s = ait.mul %k, %c : !ait.tensor<b x s x 1 x f32>
  %q = ait.quantize %n scale %s : !ait.tensor<b x s x 256 x f8E4M3FN>
  ait.output "q" %q : !ait.tensor<b x s x 256 x f8E4M3FN>
  ait.output "s" %s : !ait.tensor<b x s x 1 x f32>
}

// The row itself has another reader, which gets it from the same launch; so does the sum before it.
// CHECK-LABEL: ait.graph @row_and_sum
ait.graph @row_and_sum(%x: !ait.tensor<r x 768 x f16>, %z: !ait.tensor<r x 768 x f16>) dims {r = 1 to 256} {
  // CHECK: ait.loops(%x, %z) for (d0 = r, d1 = 768) {
  // CHECK: } : !ait.tensor<r x 768 x i8>, !ait.tensor<r x 1 x f32>, !ait.tensor<r x 768 x f16>, !ait.tensor<r x 768 x f16>
  // CHECK-NOT: ait.loops
  // CHECK: ait.sort
  // CHECK-NOT: ait.loops
  // CHECK: }
  %h = ait.add %x, %z : !ait.tensor<r x 768 x f16>
  %n = ait.layer_norm %h axes 1 eps 1e-05 : !ait.tensor<r x 768 x f16>
  %v = ait.cast %n : !ait.tensor<r x 768 x f32>
  %a = ait.abs %v : !ait.tensor<r x 768 x f32>
  %m = ait.reduce max %a dims [1] : !ait.tensor<r x f32>
  %s = ait.reshape %m : !ait.tensor<r x 1 x f32>
  %c = ait.constant 0.0078740157480315 : !ait.tensor<f32>
  %t = ait.mul %s, %c : !ait.tensor<r x 1 x f32>
  %q = ait.quantize %n scale %t : !ait.tensor<r x 768 x i8>
  %o, %p = ait.sort %n dim 1 : !ait.tensor<r x 768 x f16>, !ait.tensor<r x 768 x i64>
  ait.output "q" %q : !ait.tensor<r x 768 x i8>
  ait.output "t" %t : !ait.tensor<r x 1 x f32>
  ait.output "o" %o : !ait.tensor<r x 768 x f16>
  ait.output "h" %h : !ait.tensor<r x 768 x f16>
}

// Something needs the scale before the row is stored.
// CHECK-LABEL: ait.graph @needed_before
ait.graph @needed_before(%x: !ait.tensor<r x 768 x f16>) dims {r = 1 to 256} {
  // CHECK: ait.loops(%x) for (d0 = r, d1 = 1) {
  // CHECK: ait.sort
  // CHECK: ait.loops(%x, {{.*}}) for (d0 = r, d1 = 768) {
  // CHECK: } : !ait.tensor<r x 768 x f8E4M3FN>
  %v = ait.cast %x : !ait.tensor<r x 768 x f32>
  %a = ait.abs %v : !ait.tensor<r x 768 x f32>
  %m = ait.reduce max %a dims [1] : !ait.tensor<r x f32>
  %k = ait.reshape %m : !ait.tensor<r x 1 x f32>
  %c = ait.constant 0.0078740157480315 : !ait.tensor<f32>
  %s = ait.mul %k, %c : !ait.tensor<r x 1 x f32>
  %o, %p = ait.sort %s dim 0 : !ait.tensor<r x 1 x f32>, !ait.tensor<r x 1 x i64>
  %q = ait.quantize %x scale %s : !ait.tensor<r x 768 x f8E4M3FN>
  ait.output "q" %q : !ait.tensor<r x 768 x f8E4M3FN>
  ait.output "o" %o : !ait.tensor<r x 1 x f32>
}

// Rows may have no elements: then no point of the loops would store their scale.
// CHECK-LABEL: ait.graph @empty_rows
ait.graph @empty_rows(%x: !ait.tensor<r x k x f16>) dims {r = 1 to 256, k = 0 to 768} {
  // CHECK: } : !ait.tensor<r x 1 x f32>
  // CHECK: } : !ait.tensor<r x k x f8E4M3FN>
  // CHECK-NEXT: ait.output
  %v = ait.cast %x : !ait.tensor<r x k x f32>
  %a = ait.abs %v : !ait.tensor<r x k x f32>
  %m = ait.reduce max %a dims [1] : !ait.tensor<r x f32>
  %g = ait.reshape %m : !ait.tensor<r x 1 x f32>
  %c = ait.constant 0.0078740157480315 : !ait.tensor<f32>
  %s = ait.max %g, %c : !ait.tensor<r x 1 x f32>
  %q = ait.quantize %x scale %s : !ait.tensor<r x k x f8E4M3FN>
  ait.output "q" %q : !ait.tensor<r x k x f8E4M3FN>
  ait.output "s" %s : !ait.tensor<r x 1 x f32>
}

// A value of another rank is stored by a launch of its own.
// CHECK-LABEL: ait.graph @another_rank
ait.graph @another_rank(%x: !ait.tensor<r x 768 x f16>) dims {r = 1 to 256} {
  // CHECK: } : !ait.tensor<r x f32>
  // CHECK: } : !ait.tensor<r x 768 x f8E4M3FN>
  // CHECK-NEXT: ait.output
  %v = ait.cast %x : !ait.tensor<r x 768 x f32>
  %a = ait.abs %v : !ait.tensor<r x 768 x f32>
  %m = ait.reduce max %a dims [1] : !ait.tensor<r x f32>
  %s = ait.reshape %m : !ait.tensor<r x 1 x f32>
  %q = ait.quantize %x scale %s : !ait.tensor<r x 768 x f8E4M3FN>
  ait.output "q" %q : !ait.tensor<r x 768 x f8E4M3FN>
  ait.output "m" %m : !ait.tensor<r x f32>
}

// A new state stays in the launch that overwrites the old one.
// CHECK-LABEL: ait.graph @state
ait.graph @state(%x: !ait.tensor<r x 768 x f16>, %old: !ait.tensor<r x 1 x f32> donated) dims {r = 1 to 256} {
  // CHECK: [[S:%.*]] = ait.max {{.*}} : !ait.tensor<r x 1 x f32>
  // CHECK: } : !ait.tensor<r x 768 x f8E4M3FN>
  // CHECK: ait.output "s" [[S]] in place of %old
  %v = ait.cast %x : !ait.tensor<r x 768 x f32>
  %a = ait.abs %v : !ait.tensor<r x 768 x f32>
  %m = ait.reduce max %a dims [1] : !ait.tensor<r x f32>
  %k = ait.reshape %m : !ait.tensor<r x 1 x f32>
  %s = ait.max %k, %old : !ait.tensor<r x 1 x f32>
  %q = ait.quantize %x scale %s : !ait.tensor<r x 768 x f8E4M3FN>
  ait.output "q" %q : !ait.tensor<r x 768 x f8E4M3FN>
  ait.output "s" %s in place of %old : !ait.tensor<r x 1 x f32>
}

// A norm, a scale for each group of a row, and the numbers with a dim for the groups; others read them without it.
// CHECK-LABEL: ait.graph @norm_and_groups
ait.graph @norm_and_groups(%x: !ait.tensor<r x 640 x f16>, %w: !ait.tensor<640 x f16>) dims {r = 0 to 256} {
  // CHECK:      [[Q:%.+]], [[S:%.+]] = ait.loops(%x, %w) for (d0 = r, d1 = 5, d2 = 128) {
  // CHECK:      } : !ait.tensor<r x 5 x 128 x f8E4M3FN>, !ait.tensor<r x 5 x 1 x f32>
  // CHECK-NEXT: [[T:%.+]] = ait.reshape [[S]] : !ait.tensor<r x 5 x f32>
  // CHECK-NEXT: ait.reshape [[Q]] : !ait.tensor<r x 640 x f8E4M3FN>
  // CHECK-NEXT: ait.output
  %n = ait.rms_norm %x scale %w axes 1 eps 1e-05 : !ait.tensor<r x 640 x f16>
  %v = ait.cast %n : !ait.tensor<r x 640 x f32>
  %a = ait.abs %v : !ait.tensor<r x 640 x f32>
  %p = ait.reshape %a : !ait.tensor<r x 5 x 128 x f32>
  %m = ait.reduce max %p dims [2] : !ait.tensor<r x 5 x f32>
  %k = ait.reshape %m : !ait.tensor<r x 5 x 1 x f32>
  %c = ait.constant 448.0 : !ait.tensor<f32>
  %s = ait.div %k, %c : !ait.tensor<r x 5 x 1 x f32>
  %t = ait.reshape %s : !ait.tensor<r x 5 x f32>
  %g = ait.reshape %n : !ait.tensor<r x 5 x 128 x f16>
  %q = ait.quantize %g scale %s : !ait.tensor<r x 5 x 128 x f8E4M3FN>
  %y = ait.reshape %q : !ait.tensor<r x 640 x f8E4M3FN>
  ait.output "y" %y : !ait.tensor<r x 640 x f8E4M3FN>
  ait.output "t" %t : !ait.tensor<r x 5 x f32>
}

// Something needs the scales, in another shape, before the numbers are stored.
// CHECK-LABEL: ait.graph @reshaped_before
ait.graph @reshaped_before(%x: !ait.tensor<r x 640 x f16>) dims {r = 1 to 256} {
  // CHECK: } : !ait.tensor<r x 5 x 1 x f32>
  // CHECK: ait.sort
  // CHECK: } : !ait.tensor<r x 5 x 128 x f8E4M3FN>
  %v = ait.cast %x : !ait.tensor<r x 640 x f32>
  %a = ait.abs %v : !ait.tensor<r x 640 x f32>
  %p = ait.reshape %a : !ait.tensor<r x 5 x 128 x f32>
  %m = ait.reduce max %p dims [2] : !ait.tensor<r x 5 x f32>
  %k = ait.reshape %m : !ait.tensor<r x 5 x 1 x f32>
  %c = ait.constant 448.0 : !ait.tensor<f32>
  %s = ait.div %k, %c : !ait.tensor<r x 5 x 1 x f32>
  %t = ait.reshape %s : !ait.tensor<r x 5 x f32>
  %o, %i = ait.sort %t dim 1 : !ait.tensor<r x 5 x f32>, !ait.tensor<r x 5 x i64>
  %g = ait.reshape %x : !ait.tensor<r x 5 x 128 x f16>
  %q = ait.quantize %g scale %s : !ait.tensor<r x 5 x 128 x f8E4M3FN>
  ait.output "q" %q : !ait.tensor<r x 5 x 128 x f8E4M3FN>
  ait.output "o" %o : !ait.tensor<r x 5 x f32>
}

// The row has another reader, too: the launch stores it with a dim for the groups, and others read it without that dim.
// CHECK-LABEL: ait.graph @row_and_groups
ait.graph @row_and_groups(%x: !ait.tensor<r x 640 x f16>, %w: !ait.tensor<640 x f16>) dims {r = 0 to 256} {
  // CHECK:      ait.loops(%x, %w) for (d0 = r, d1 = 5, d2 = 128) {
  // CHECK:      } : !ait.tensor<r x 5 x 128 x f8E4M3FN>, !ait.tensor<r x 5 x 1 x f32>, !ait.tensor<r x 5 x 128 x f16>
  // CHECK-NOT:  ait.loops
  // CHECK:      ait.sort {{.*}} : !ait.tensor<r x 640 x f16>
  // CHECK-NOT:  ait.loops
  // CHECK:      }
  %n = ait.rms_norm %x scale %w axes 1 eps 1e-05 : !ait.tensor<r x 640 x f16>
  %v = ait.cast %n : !ait.tensor<r x 640 x f32>
  %a = ait.abs %v : !ait.tensor<r x 640 x f32>
  %p = ait.reshape %a : !ait.tensor<r x 5 x 128 x f32>
  %m = ait.reduce max %p dims [2] : !ait.tensor<r x 5 x f32>
  %k = ait.reshape %m : !ait.tensor<r x 5 x 1 x f32>
  %c = ait.constant 448.0 : !ait.tensor<f32>
  %s = ait.div %k, %c : !ait.tensor<r x 5 x 1 x f32>
  %g = ait.reshape %n : !ait.tensor<r x 5 x 128 x f16>
  %q = ait.quantize %g scale %s : !ait.tensor<r x 5 x 128 x f8E4M3FN>
  %o, %i = ait.sort %n dim 1 : !ait.tensor<r x 640 x f16>, !ait.tensor<r x 640 x i64>
  ait.output "q" %q : !ait.tensor<r x 5 x 128 x f8E4M3FN>
  ait.output "s" %s : !ait.tensor<r x 5 x 1 x f32>
  ait.output "o" %o : !ait.tensor<r x 640 x f16>
}

// A sum that is an output, and its groups. How many rows and groups there are is known in the run.
// CHECK-LABEL: ait.graph @output_and_groups
ait.graph @output_and_groups(%x: !ait.tensor<b x s x (128*t) x f16>, %z: !ait.tensor<b x s x (128*t) x f16>) dims {b = 1 to 4, s = 1 to 16, t = 1 to 8} {
  // CHECK:      [[Q:%.+]], [[S:%.+]], [[Y:%.+]] = ait.loops(%x, %z) for (d0 = b, d1 = s, d2 = t, d3 = 128) {
  // CHECK:      } : !ait.tensor<b x s x t x 128 x f8E4M3FN>, !ait.tensor<b x s x t x 1 x f32>, !ait.tensor<b x s x t x 128 x f16>
  // CHECK-NEXT: [[R:%.+]] = ait.reshape [[Y]] : !ait.tensor<b x s x (128*t) x f16>
  // CHECK:      ait.output "y" [[R]]
  %e = ait.gelu %x : !ait.tensor<b x s x (128*t) x f16>
  %n = ait.add %e, %z : !ait.tensor<b x s x (128*t) x f16>
  %a = ait.abs %n : !ait.tensor<b x s x (128*t) x f16>
  %v = ait.cast %a : !ait.tensor<b x s x (128*t) x f32>
  %p = ait.reshape %v : !ait.tensor<b x s x t x 128 x f32>
  %m = ait.reduce max %p dims [3] : !ait.tensor<b x s x t x f32>
  %k = ait.reshape %m : !ait.tensor<b x s x t x 1 x f32>
  %c = ait.constant 0.002 : !ait.tensor<f32>
  %s = ait.mul %k, %c : !ait.tensor<b x s x t x 1 x f32>
  %g = ait.reshape %n : !ait.tensor<b x s x t x 128 x f16>
  %q = ait.quantize %g scale %s : !ait.tensor<b x s x t x 128 x f8E4M3FN>
  ait.output "y" %n : !ait.tensor<b x s x (128*t) x f16>
  ait.output "q" %q : !ait.tensor<b x s x t x 128 x f8E4M3FN>
  ait.output "s" %s : !ait.tensor<b x s x t x 1 x f32>
}

// Something needs the row before its groups are stored.
// CHECK-LABEL: ait.graph @row_before_groups
ait.graph @row_before_groups(%x: !ait.tensor<r x 640 x f16>, %w: !ait.tensor<640 x f16>) dims {r = 1 to 256} {
  // CHECK: [[N:%.+]] = ait.rms_norm
  // CHECK: ait.sort [[N]]
  // CHECK: ait.loops([[N]]
  // CHECK: } : !ait.tensor<r x 5 x 128 x f8E4M3FN>, !ait.tensor<r x 5 x 1 x f32>
  %n = ait.rms_norm %x scale %w axes 1 eps 1e-05 : !ait.tensor<r x 640 x f16>
  %o, %i = ait.sort %n dim 1 : !ait.tensor<r x 640 x f16>, !ait.tensor<r x 640 x i64>
  %h = ait.add %n, %o : !ait.tensor<r x 640 x f16>
  %v = ait.cast %h : !ait.tensor<r x 640 x f32>
  %a = ait.abs %v : !ait.tensor<r x 640 x f32>
  %p = ait.reshape %a : !ait.tensor<r x 5 x 128 x f32>
  %m = ait.reduce max %p dims [2] : !ait.tensor<r x 5 x f32>
  %k = ait.reshape %m : !ait.tensor<r x 5 x 1 x f32>
  %c = ait.constant 448.0 : !ait.tensor<f32>
  %s = ait.div %k, %c : !ait.tensor<r x 5 x 1 x f32>
  %g = ait.reshape %h : !ait.tensor<r x 5 x 128 x f16>
  %q = ait.quantize %g scale %s : !ait.tensor<r x 5 x 128 x f8E4M3FN>
  ait.output "q" %q : !ait.tensor<r x 5 x 128 x f8E4M3FN>
  ait.output "s" %s : !ait.tensor<r x 5 x 1 x f32>
}

// The row is the new state of an input: it stays in the launch that overwrites the old one.
// CHECK-LABEL: ait.graph @state_and_groups
ait.graph @state_and_groups(%x: !ait.tensor<r x 640 x f16>, %old: !ait.tensor<r x 640 x f16> donated) dims {r = 1 to 256} {
  // CHECK-NOT: !ait.tensor<r x 5 x 128 x f16>{{$}}
  // CHECK: ait.output "n" {{.*}} in place of %old
  %n = ait.add %x, %old : !ait.tensor<r x 640 x f16>
  %v = ait.cast %n : !ait.tensor<r x 640 x f32>
  %a = ait.abs %v : !ait.tensor<r x 640 x f32>
  %p = ait.reshape %a : !ait.tensor<r x 5 x 128 x f32>
  %m = ait.reduce max %p dims [2] : !ait.tensor<r x 5 x f32>
  %k = ait.reshape %m : !ait.tensor<r x 5 x 1 x f32>
  %c = ait.constant 448.0 : !ait.tensor<f32>
  %s = ait.div %k, %c : !ait.tensor<r x 5 x 1 x f32>
  %g = ait.reshape %n : !ait.tensor<r x 5 x 128 x f16>
  %q = ait.quantize %g scale %s : !ait.tensor<r x 5 x 128 x f8E4M3FN>
  ait.output "n" %n in place of %old : !ait.tensor<r x 640 x f16>
  ait.output "q" %q : !ait.tensor<r x 5 x 128 x f8E4M3FN>
  ait.output "s" %s : !ait.tensor<r x 5 x 1 x f32>
}

// What others read has heads of 64, which are not groups of 128 taken together.
// CHECK-LABEL: ait.graph @heads_and_groups
ait.graph @heads_and_groups(%x: !ait.tensor<r x 640 x f16>) dims {r = 1 to 256} {
  // CHECK-NOT: !ait.tensor<r x 5 x 128 x f8E4M3FN>, !ait.tensor<r x 5 x 1 x f32>, !ait.tensor<r x 5 x 128 x f16>
  // CHECK: }
  %c = ait.constant 448.0 : !ait.tensor<f32>
  %h = ait.reshape %x : !ait.tensor<r x 10 x 64 x f16>
  %n = ait.gelu %h : !ait.tensor<r x 10 x 64 x f16>
  %g = ait.reshape %n : !ait.tensor<r x 5 x 128 x f16>
  %v = ait.cast %g : !ait.tensor<r x 5 x 128 x f32>
  %a = ait.abs %v : !ait.tensor<r x 5 x 128 x f32>
  %m = ait.reduce max %a dims [2] : !ait.tensor<r x 5 x f32>
  %k = ait.reshape %m : !ait.tensor<r x 5 x 1 x f32>
  %s = ait.div %k, %c : !ait.tensor<r x 5 x 1 x f32>
  %q = ait.quantize %g scale %s : !ait.tensor<r x 5 x 128 x f8E4M3FN>
  ait.output "n" %n : !ait.tensor<r x 10 x 64 x f16>
  ait.output "q" %q : !ait.tensor<r x 5 x 128 x f8E4M3FN>
  ait.output "s" %s : !ait.tensor<r x 5 x 1 x f32>
}
