// RUN: ait-opt %s -p 'form-loops,select{target="cuda" arch="sm_90a"}' | filecheck %s --check-prefix=SELECTED

// The folds are short, but the elements of a row share them: one launch, in which a thread has a row.
// SELECTED-LABEL: ait.graph @log_softmax_of_short_rows
// SELECTED-NEXT: ait.loops
// SELECTED: } {kernel = #ait.kernel<"rows", {kept = 1 : i64, lanes = 2 : i64, threads = 1 : i64}>}
// SELECTED-NEXT: ait.output
ait.graph @log_softmax_of_short_rows(%x: !ait.tensor<1000000 x 10 x f16>) {
  %m = ait.reduce max %x dims [1] : !ait.tensor<1000000 x f16>
  %n = ait.reshape %m : !ait.tensor<1000000 x 1 x f16>
  %d = ait.sub %x, %n : !ait.tensor<1000000 x 10 x f16>
  %e = ait.exp %d : !ait.tensor<1000000 x 10 x f16>
  %s = ait.reduce sum %e dims [1] : !ait.tensor<1000000 x f16>
  %t = ait.reshape %s : !ait.tensor<1000000 x 1 x f16>
  %l = ait.log %t : !ait.tensor<1000000 x 1 x f16>
  %y = ait.sub %d, %l : !ait.tensor<1000000 x 10 x f16>
  ait.output "y" %y : !ait.tensor<1000000 x 10 x f16>
}

// Nothing shares these folds: each result is one thread's.
// SELECTED-LABEL: ait.graph @pool_of_short_windows
// SELECTED: } {kernel = #ait.kernel<"native", {
ait.graph @pool_of_short_windows(%x: !ait.tensor<b x 64 x 3 x f32>) dims {b = 1 to 1000000} {
  %y = ait.pool max %x window [3] stride [2] pad [1] : !ait.tensor<b x 32 x 3 x f32>
  ait.output "y" %y : !ait.tensor<b x 32 x 3 x f32>
}

// The elements of a padded sum are read in the order of the operands, and turn as sums.
// SELECTED-LABEL: ait.graph @turned_pad_of_a_sum
// SELECTED-NEXT: ait.loops
// SELECTED: } {kernel = #ait.kernel<"tiles", {
// SELECTED-NEXT: ait.output
ait.graph @turned_pad_of_a_sum(%x: !ait.tensor<64 x 64 x 12800 x f16>, %z: !ait.tensor<64 x 64 x 12800 x f16>) {
  %s = ait.add %x, %z : !ait.tensor<64 x 64 x 12800 x f16>
  %p = ait.pad constant %s before [0, 0, 1] : !ait.tensor<64 x 64 x 12802 x f16>
  %y = ait.permute %p [0, 2, 1] : !ait.tensor<64 x 12802 x 64 x f16>
  ait.output "y" %y : !ait.tensor<64 x 12802 x 64 x f16>
}

// A padded sum whose operands lie in another order of five dims: a block turns boxes of sums.
// SELECTED-LABEL: ait.graph @padded_sum_in_another_order
// SELECTED-NEXT: ait.loops
// SELECTED: } {kernel = #ait.kernel<"boxes", {
// SELECTED-NEXT: ait.output
ait.graph @padded_sum_in_another_order(%x: !ait.tensor<101 x 256 x 14 x 14 x 14 x f16>, %z: !ait.tensor<101 x 256 x 14 x 14 x 14 x f16>) {
  %s = ait.add %x, %z : !ait.tensor<101 x 256 x 14 x 14 x 14 x f16>
  %p = ait.pad constant %s before [0, 0, 3, 3, 4] : !ait.tensor<101 x 256 x 21 x 21 x 18 x f16>
  %y = ait.permute %p [0, 4, 3, 1, 2] : !ait.tensor<101 x 18 x 21 x 256 x 21 x f16>
  ait.output "y" %y : !ait.tensor<101 x 18 x 21 x 256 x 21 x f16>
}

// Two operands and the result lie in three orders: no turn of one axis serves both operands.
// SELECTED-LABEL: ait.graph @gate_in_three_orders
// SELECTED-NEXT: ait.loops
// SELECTED: } {kernel = #ait.kernel<"boxes", {
// SELECTED-NEXT: ait.output
ait.graph @gate_in_three_orders(%x: !ait.tensor<107 x 52 x 8 x 313 x f16>, %z: !ait.tensor<313 x 8 x 107 x 52 x f16>) {
  %p = ait.permute %x [3, 2, 0, 1] : !ait.tensor<313 x 8 x 107 x 52 x f16>
  %s = ait.silu %p : !ait.tensor<313 x 8 x 107 x 52 x f16>
  %m = ait.mul %s, %z : !ait.tensor<313 x 8 x 107 x 52 x f16>
  %y = ait.permute %m [3, 0, 2, 1] : !ait.tensor<52 x 313 x 107 x 8 x f16>
  ait.output "y" %y : !ait.tensor<52 x 313 x 107 x 8 x f16>
}
