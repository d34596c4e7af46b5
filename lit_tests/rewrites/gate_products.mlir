// RUN: ait-opt %s -p gate-products | filecheck %s
// RUN: ait-opt %s -p gate-products --check-semantics 2>&1 | filecheck %s --check-prefix=SEMANTICS
// SEMANTICS: no difference

// silu(gate) * up, from one product.
// CHECK-LABEL: ait.graph @swiglu
// CHECK-NEXT: [[Y:%.*]] = ait.gated_gemm rcr %x, %w epilogue() {
// CHECK-NEXT: ^bb0([[G:%.*]]: f32, [[U:%.*]]: f32):
// CHECK-NEXT: [[S:%.*]] = ait.silu [[G]] : f32
// CHECK-NEXT: [[P:%.*]] = ait.mul [[S]], [[U]] : f32
// CHECK-NEXT: ait.yield [[P]] : f32
// CHECK-NEXT: } : !ait.tensor<b x 6 x f16>
// CHECK-NEXT: ait.output "y" [[Y]]
ait.graph @swiglu(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 0 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.silu %2 : f32
    %5 = ait.mul %4, %3 : f32
    ait.yield %5 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// The second half is the gate, and read first; another operand stands between them. Dims of any sizes.
// CHECK-LABEL: ait.graph @geglu
// CHECK-NEXT: ait.gated_gemm rrr %x, %w epilogue(%r) {
// CHECK-NEXT: ^bb0([[A:%.*]]: f32, [[B:%.*]]: f32, [[R:%.*]]: f32):
// CHECK-NEXT: [[S:%.*]] = ait.fast_gelu [[B]] : f32
// CHECK-NEXT: [[P:%.*]] = ait.mul [[A]], [[S]] : f32
// CHECK-NEXT: ait.add [[P]], [[R]] : f32
// CHECK: } : !ait.tensor<b x s x n x f32>
ait.graph @geglu(%x: !ait.tensor<b x s x k x bf16>, %w: !ait.tensor<k x (2*n) x bf16>, %r: !ait.tensor<n x f32>) dims {b = 0 to 2, s = 1 to 3, k = 0 to 4, n = 0 to 5} {
  %0 = ait.gemm rrr %x, %w : !ait.tensor<b x s x (2*n) x bf16>
  %u, %g = ait.split %0 dim 2 : !ait.tensor<b x s x n x bf16>, !ait.tensor<b x s x n x bf16>
  %1 = ait.fused_elementwise(%g, %r, %u) {
  ^bb0(%2: f32, %3: f32, %4: f32):
    %5 = ait.fast_gelu %2 : f32
    %6 = ait.mul %4, %5 : f32
    %7 = ait.add %6, %3 : f32
    ait.yield %7 : f32
  } : !ait.tensor<b x s x n x f32>
  ait.output "y" %1 : !ait.tensor<b x s x n x f32>
}

// f32, and one column a half: nothing here asks which kernels there are.
// CHECK-LABEL: ait.graph @f32
// CHECK: ait.gated_gemm
ait.graph @f32(%x: !ait.tensor<1 x 4 x f32>, %w: !ait.tensor<2 x 4 x f32>) {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<1 x 2 x f32>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<1 x 1 x f32>, !ait.tensor<1 x 1 x f32>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.sub %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<1 x 1 x f32>
  ait.output "y" %1 : !ait.tensor<1 x 1 x f32>
}

// The product adds a bias first: each half gets its own, in place of what a concat joins.
// CHECK-LABEL: ait.graph @biased
// CHECK-NEXT: ait.gated_gemm rcr %x, %w epilogue(%p, %q) {
// CHECK-NEXT: ^bb0([[G:%.*]]: f32, [[U:%.*]]: f32, [[P:%.*]]: f32, [[Q:%.*]]: f32):
// CHECK-NEXT: [[GP:%.*]] = ait.add [[G]], [[P]] : f32
// CHECK-NEXT: [[UQ:%.*]] = ait.add [[U]], [[Q]] : f32
// CHECK-NEXT: [[S:%.*]] = ait.silu [[UQ]] : f32
// CHECK-NEXT: ait.mul [[S]], [[GP]] : f32
// CHECK: } : !ait.tensor<b x 6 x f16>
ait.graph @biased(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>, %p: !ait.tensor<6 x f16>, %q: !ait.tensor<6 x f16>) dims {b = 0 to 8} {
  %b = ait.concat %p, %q dim 0 : !ait.tensor<12 x f16>
  %0 = ait.gemm rcr %x, %w epilogue(%b) {
  ^bb0(%7: f32, %8: f32):
    %9 = ait.add %7, %8 : f32
    ait.yield %9 : f32
  } : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%u, %g) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.silu %2 : f32
    %5 = ait.mul %4, %3 : f32
    ait.yield %5 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// A bias and a residual in one tensor, a factor for each row, an operand of the product that the pass reads, too; of
// what a concat joins unevenly, and of any other tensor, the halves are taken.
// CHECK-LABEL: ait.graph @everything
// CHECK: [[P:%.*]], [[Q:%.*]] = ait.split {{%.*}} dim 0 : !ait.tensor<n x f16>, !ait.tensor<n x f16>
// CHECK-NEXT: [[R:%.*]], [[T:%.*]] = ait.split %r dim 1 : !ait.tensor<b x n x f32>, !ait.tensor<b x n x f32>
// CHECK-NEXT: ait.gated_gemm rcr %x, %w epilogue([[P]], [[R]], %f, [[Q]], [[T]]) {
// CHECK-NEXT: ^bb0([[G:%.*]]: f32, [[U:%.*]]: f32, [[P:%.*]]: f32, [[R:%.*]]: f32, [[F:%.*]]: f32, [[Q:%.*]]: f32, [[T:%.*]]: f32):
// CHECK-NEXT: [[GP:%.*]] = ait.add [[G]], [[P]] : f32
// CHECK-NEXT: [[GR:%.*]] = ait.sub [[GP]], [[R]] : f32
// CHECK-NEXT: [[GF:%.*]] = ait.mul [[GR]], [[F]] : f32
// CHECK-NEXT: [[UQ:%.*]] = ait.add [[U]], [[Q]] : f32
// CHECK-NEXT: [[UT:%.*]] = ait.sub [[UQ]], [[T]] : f32
// CHECK-NEXT: [[UF:%.*]] = ait.mul [[UT]], [[F]] : f32
// CHECK-NEXT: [[D:%.*]] = ait.sub [[GF]], [[UF]] : f32
// CHECK-NEXT: [[E:%.*]] = ait.mul [[D]], [[F]] : f32
// CHECK-NEXT: ait.yield [[E]] : f32
ait.graph @everything(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<(2*n) x 4 x f16>, %p: !ait.tensor<1 x f16>, %q: !ait.tensor<(2*n-1) x f16>, %r: !ait.tensor<b x (2*n) x f32>, %f: !ait.tensor<b x 1 x f16>) dims {b = 0 to 3, n = 1 to 5} {
  %b = ait.concat %p, %q dim 0 : !ait.tensor<(2*n) x f16>
  %0 = ait.gemm rcr %x, %w epilogue(%b, %r, %f) {
  ^bb0(%7: f32, %8: f32, %9: f32, %10: f32):
    %11 = ait.add %7, %8 : f32
    %12 = ait.sub %11, %9 : f32
    %13 = ait.mul %12, %10 : f32
    ait.yield %13 : f32
  } : !ait.tensor<b x (2*n) x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x n x f16>, !ait.tensor<b x n x f16>
  %1 = ait.fused_elementwise(%g, %u, %f) {
  ^bb0(%2: f32, %3: f32, %4: f32):
    %5 = ait.sub %2, %3 : f32
    %6 = ait.mul %5, %4 : f32
    ait.yield %6 : f32
  } : !ait.tensor<b x n x f16>
  ait.output "y" %1 : !ait.tensor<b x n x f16>
}

// A product that computes something of its own alone.
// CHECK-LABEL: ait.graph @rectified
// CHECK-NEXT: ait.gated_gemm rcr %x, %w epilogue() {
// CHECK: ait.relu
// CHECK: ait.relu
// CHECK: ait.mul
ait.graph @rectified(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w epilogue() {
  ^bb0(%7: f32):
    %8 = ait.relu %7 : f32
    ait.yield %8 : f32
  } : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// What follows stays as it is, once with the first half read first and once with the second.

// The halves of what the product reads are too many operands.
// CHECK-LABEL: ait.graph @halved_operands(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @halved_operands(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>, %r0: !ait.tensor<12 x f16>, %r1: !ait.tensor<12 x f16>, %r2: !ait.tensor<12 x f16>, %r3: !ait.tensor<12 x f16>, %r4: !ait.tensor<12 x f16>, %r5: !ait.tensor<12 x f16>, %r6: !ait.tensor<12 x f16>, %r7: !ait.tensor<12 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w epilogue(%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7) {
  ^bb0(%a: f32, %q0: f32, %q1: f32, %q2: f32, %q3: f32, %q4: f32, %q5: f32, %q6: f32, %q7: f32):
    %s0 = ait.add %a, %q0 : f32
    %s1 = ait.add %s0, %q1 : f32
    %s2 = ait.add %s1, %q2 : f32
    %s3 = ait.add %s2, %q3 : f32
    %s4 = ait.add %s3, %q4 : f32
    %s5 = ait.add %s4, %q5 : f32
    %s6 = ait.add %s5, %q6 : f32
    %s7 = ait.add %s6, %q7 : f32
    ait.yield %s7 : f32
  } : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// Three parts, of which two are read.
// CHECK-LABEL: ait.graph @three
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @three(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<18 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 18 x f16>
  %g, %u, %v = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// The product is an output, too.
// CHECK-LABEL: ait.graph @product_read_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @product_read_0(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "p" %0 : !ait.tensor<b x 12 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// The first half is an output, too.
// CHECK-LABEL: ait.graph @first_read_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @first_read_0(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "h" %g : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// The second half is an output, too.
// CHECK-LABEL: ait.graph @second_read_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @second_read_0(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "h" %u : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// One half alone is read.
// CHECK-LABEL: ait.graph @one_half_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @one_half_0(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>, %r: !ait.tensor<6 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %r) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// Halves of the rows.
// CHECK-LABEL: ait.graph @rows_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @rows_0(%x: !ait.tensor<8 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>) {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<8 x 6 x f16>
  %g, %u = ait.split %0 dim 0 : !ait.tensor<4 x 6 x f16>, !ait.tensor<4 x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<4 x 6 x f16>
  ait.output "y" %1 : !ait.tensor<4 x 6 x f16>
}

// Parts of different sizes, of which one broadcasts; the product has an odd number of columns.
// CHECK-LABEL: ait.graph @unequal_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @unequal_0(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<7 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 7 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 1 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// Parts of different sizes, though as many columns in all as two halves have.
// CHECK-LABEL: ait.graph @uneven_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @uneven_0(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<8 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 7 x f16>, !ait.tensor<b x 1 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 7 x f16>
  ait.output "y" %1 : !ait.tensor<b x 7 x f16>
}

// The result is larger than a half.
// CHECK-LABEL: ait.graph @larger_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @larger_0(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>, %r: !ait.tensor<3 x b x 6 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u, %r) {
  ^bb0(%2: f32, %3: f32, %5: f32):
    %4 = ait.mul %2, %3 : f32
    %6 = ait.add %4, %5 : f32
    ait.yield %6 : f32
  } : !ait.tensor<3 x b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<3 x b x 6 x f16>
}

// The result is no float.
// CHECK-LABEL: ait.graph @compared_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @compared_0(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.compare lt %2, %3 : i1
    ait.yield %4 : i1
  } : !ait.tensor<b x 6 x i1>
  ait.output "y" %1 : !ait.tensor<b x 6 x i1>
}

// The product is stored column-major, so that these are halves of the rows of x.
// CHECK-LABEL: ait.graph @column_major_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @column_major_0(%x: !ait.tensor<12 x 4 x f16>, %w: !ait.tensor<b x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcc %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// A kernel has been chosen for the product.
// CHECK-LABEL: ait.graph @chosen_product_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @chosen_product_0(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// A kernel has been chosen for the pass.
// CHECK-LABEL: ait.graph @chosen_pass_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @chosen_pass_0(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// More operands than kernels take.
// CHECK-LABEL: ait.graph @operands_0(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @operands_0(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>, %r0: !ait.tensor<6 x f16>, %r1: !ait.tensor<6 x f16>, %r2: !ait.tensor<6 x f16>, %r3: !ait.tensor<6 x f16>, %r4: !ait.tensor<6 x f16>, %r5: !ait.tensor<6 x f16>, %r6: !ait.tensor<6 x f16>, %r7: !ait.tensor<6 x f16>, %r8: !ait.tensor<6 x f16>, %r9: !ait.tensor<6 x f16>, %r10: !ait.tensor<6 x f16>, %r11: !ait.tensor<6 x f16>, %r12: !ait.tensor<6 x f16>, %r13: !ait.tensor<6 x f16>, %r14: !ait.tensor<6 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u, %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13, %r14) {
  ^bb0(%2: f32, %3: f32, %q0: f32, %q1: f32, %q2: f32, %q3: f32, %q4: f32, %q5: f32, %q6: f32, %q7: f32, %q8: f32, %q9: f32, %q10: f32, %q11: f32, %q12: f32, %q13: f32, %q14: f32):
    %4 = ait.mul %2, %3 : f32
    %s0 = ait.add %4, %q0 : f32
    %s1 = ait.add %s0, %q1 : f32
    %s2 = ait.add %s1, %q2 : f32
    %s3 = ait.add %s2, %q3 : f32
    %s4 = ait.add %s3, %q4 : f32
    %s5 = ait.add %s4, %q5 : f32
    %s6 = ait.add %s5, %q6 : f32
    %s7 = ait.add %s6, %q7 : f32
    %s8 = ait.add %s7, %q8 : f32
    %s9 = ait.add %s8, %q9 : f32
    %s10 = ait.add %s9, %q10 : f32
    %s11 = ait.add %s10, %q11 : f32
    %s12 = ait.add %s11, %q12 : f32
    %s13 = ait.add %s12, %q13 : f32
    %s14 = ait.add %s13, %q14 : f32
    ait.yield %s14 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// The product is an output, too.
// CHECK-LABEL: ait.graph @product_read_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @product_read_1(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%u, %g) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "p" %0 : !ait.tensor<b x 12 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// The first half is an output, too.
// CHECK-LABEL: ait.graph @first_read_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @first_read_1(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%u, %g) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "h" %g : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// The second half is an output, too.
// CHECK-LABEL: ait.graph @second_read_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @second_read_1(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%u, %g) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "h" %u : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// One half alone is read.
// CHECK-LABEL: ait.graph @one_half_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @one_half_1(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>, %r: !ait.tensor<6 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%u, %r) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// Halves of the rows.
// CHECK-LABEL: ait.graph @rows_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @rows_1(%x: !ait.tensor<8 x 4 x f16>, %w: !ait.tensor<6 x 4 x f16>) {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<8 x 6 x f16>
  %g, %u = ait.split %0 dim 0 : !ait.tensor<4 x 6 x f16>, !ait.tensor<4 x 6 x f16>
  %1 = ait.fused_elementwise(%u, %g) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<4 x 6 x f16>
  ait.output "y" %1 : !ait.tensor<4 x 6 x f16>
}

// Parts of different sizes, of which one broadcasts; the product has an odd number of columns.
// CHECK-LABEL: ait.graph @unequal_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @unequal_1(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<7 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 7 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 1 x f16>
  %1 = ait.fused_elementwise(%u, %g) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// Parts of different sizes, though as many columns in all as two halves have.
// CHECK-LABEL: ait.graph @uneven_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @uneven_1(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<8 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 8 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 7 x f16>, !ait.tensor<b x 1 x f16>
  %1 = ait.fused_elementwise(%u, %g) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 7 x f16>
  ait.output "y" %1 : !ait.tensor<b x 7 x f16>
}

// The result is larger than a half.
// CHECK-LABEL: ait.graph @larger_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @larger_1(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>, %r: !ait.tensor<3 x b x 6 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%u, %g, %r) {
  ^bb0(%2: f32, %3: f32, %5: f32):
    %4 = ait.mul %2, %3 : f32
    %6 = ait.add %4, %5 : f32
    ait.yield %6 : f32
  } : !ait.tensor<3 x b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<3 x b x 6 x f16>
}

// The result is no float.
// CHECK-LABEL: ait.graph @compared_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @compared_1(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%u, %g) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.compare lt %2, %3 : i1
    ait.yield %4 : i1
  } : !ait.tensor<b x 6 x i1>
  ait.output "y" %1 : !ait.tensor<b x 6 x i1>
}

// The product is stored column-major, so that these are halves of the rows of x.
// CHECK-LABEL: ait.graph @column_major_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @column_major_1(%x: !ait.tensor<12 x 4 x f16>, %w: !ait.tensor<b x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcc %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%u, %g) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// A kernel has been chosen for the product.
// CHECK-LABEL: ait.graph @chosen_product_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @chosen_product_1(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%u, %g) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// A kernel has been chosen for the pass.
// CHECK-LABEL: ait.graph @chosen_pass_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @chosen_pass_1(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%u, %g) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } {kernel = #ait.kernel<"native", {}>} : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// More operands than kernels take.
// CHECK-LABEL: ait.graph @operands_1(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @operands_1(%x: !ait.tensor<b x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>, %r0: !ait.tensor<6 x f16>, %r1: !ait.tensor<6 x f16>, %r2: !ait.tensor<6 x f16>, %r3: !ait.tensor<6 x f16>, %r4: !ait.tensor<6 x f16>, %r5: !ait.tensor<6 x f16>, %r6: !ait.tensor<6 x f16>, %r7: !ait.tensor<6 x f16>, %r8: !ait.tensor<6 x f16>, %r9: !ait.tensor<6 x f16>, %r10: !ait.tensor<6 x f16>, %r11: !ait.tensor<6 x f16>, %r12: !ait.tensor<6 x f16>, %r13: !ait.tensor<6 x f16>, %r14: !ait.tensor<6 x f16>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f16>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f16>, !ait.tensor<b x 6 x f16>
  %1 = ait.fused_elementwise(%u, %g, %r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9, %r10, %r11, %r12, %r13, %r14) {
  ^bb0(%2: f32, %3: f32, %q0: f32, %q1: f32, %q2: f32, %q3: f32, %q4: f32, %q5: f32, %q6: f32, %q7: f32, %q8: f32, %q9: f32, %q10: f32, %q11: f32, %q12: f32, %q13: f32, %q14: f32):
    %4 = ait.mul %2, %3 : f32
    %s0 = ait.add %4, %q0 : f32
    %s1 = ait.add %s0, %q1 : f32
    %s2 = ait.add %s1, %q2 : f32
    %s3 = ait.add %s2, %q3 : f32
    %s4 = ait.add %s3, %q4 : f32
    %s5 = ait.add %s4, %q5 : f32
    %s6 = ait.add %s5, %q6 : f32
    %s7 = ait.add %s6, %q7 : f32
    %s8 = ait.add %s7, %q8 : f32
    %s9 = ait.add %s8, %q9 : f32
    %s10 = ait.add %s9, %q10 : f32
    %s11 = ait.add %s10, %q11 : f32
    %s12 = ait.add %s11, %q12 : f32
    %s13 = ait.add %s12, %q13 : f32
    %s14 = ait.add %s13, %q14 : f32
    ait.yield %s14 : f32
  } : !ait.tensor<b x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 6 x f16>
}

// Factors are 8-bit floats, of which no gated product is made.
// CHECK-LABEL: ait.graph @float8(
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @float8(%x: !ait.tensor<b x 16 x f8E4M3FN>, %w: !ait.tensor<12 x 16 x f8E4M3FN>) dims {b = 1 to 8} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 12 x f32>
  %g, %u = ait.split %0 dim 1 : !ait.tensor<b x 6 x f32>, !ait.tensor<b x 6 x f32>
  %1 = ait.fused_elementwise(%u, %g) {
  ^bb0(%2: f32, %3: f32):
    %4 = ait.mul %2, %3 : f32
    ait.yield %4 : f32
  } : !ait.tensor<b x 6 x f32>
  ait.output "y" %1 : !ait.tensor<b x 6 x f32>
}

// An operand that would need a fourth loop over the leading dims and rows stays out of the product.
// CHECK-LABEL: ait.graph @rows_in_four_loops
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @rows_in_four_loops(%x: !ait.tensor<b x 3 x 2 x 5 x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>, %c: !ait.tensor<b x 1 x 2 x 1 x 6 x f16>) dims {b = 0 to 3} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 3 x 2 x 5 x 12 x f16>
  %g, %u = ait.split %0 dim 4 : !ait.tensor<b x 3 x 2 x 5 x 6 x f16>, !ait.tensor<b x 3 x 2 x 5 x 6 x f16>
  %1 = ait.fused_elementwise(%g, %u, %c) {
  ^bb0(%2: f32, %3: f32, %4: f32):
    %5 = ait.silu %2 : f32
    %6 = ait.mul %5, %3 : f32
    %7 = ait.mul %6, %4 : f32
    ait.yield %7 : f32
  } : !ait.tensor<b x 3 x 2 x 5 x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 3 x 2 x 5 x 6 x f16>
}

// The same with the halves in the other order.
// CHECK-LABEL: ait.graph @rows_in_four_loops_of_swapped_halves
// CHECK-NOT: ait.gated_gemm
// CHECK: ait.output
ait.graph @rows_in_four_loops_of_swapped_halves(%x: !ait.tensor<b x 3 x 2 x 5 x 4 x f16>, %w: !ait.tensor<12 x 4 x f16>, %c: !ait.tensor<b x 1 x 2 x 1 x 6 x f16>) dims {b = 0 to 3} {
  %0 = ait.gemm rcr %x, %w : !ait.tensor<b x 3 x 2 x 5 x 12 x f16>
  %g, %u = ait.split %0 dim 4 : !ait.tensor<b x 3 x 2 x 5 x 6 x f16>, !ait.tensor<b x 3 x 2 x 5 x 6 x f16>
  %1 = ait.fused_elementwise(%u, %g, %c) {
  ^bb0(%2: f32, %3: f32, %4: f32):
    %5 = ait.silu %3 : f32
    %6 = ait.mul %2, %5 : f32
    %7 = ait.mul %6, %4 : f32
    ait.yield %7 : f32
  } : !ait.tensor<b x 3 x 2 x 5 x 6 x f16>
  ait.output "y" %1 : !ait.tensor<b x 3 x 2 x 5 x 6 x f16>
}
