// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @table(%table: !ait.tensor<100 x f16>, %ids: !ait.tensor<4 x i64>) {
  // expected-error @below {{ait.embedding: the table must have 2 dims, got [100]}}
  %0 = ait.embedding %table, %ids : !ait.tensor<4 x f16>
}

// -----

ait.graph @ids(%table: !ait.tensor<100 x 16 x f16>, %ids: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.embedding: ids must be i32 or i64, got f16}}
  %0 = ait.embedding %table, %ids : !ait.tensor<4 x 16 x f16>
}

// -----

ait.graph @result(%table: !ait.tensor<100 x 16 x f16>, %ids: !ait.tensor<4 x i32>) {
  // expected-error @below {{ait.embedding: the result is !ait.tensor<4 x 8 x f16>, expected !ait.tensor<4 x 16 x f16>}}
  %0 = ait.embedding %table, %ids : !ait.tensor<4 x 8 x f16>
}

// -----

ait.graph @odd(%t: !ait.tensor<100 x 16 x f16>, %i: !ait.tensor<4 x i64>) {
  // expected-error @below {{ait.grouped_embedding: has 3 operands and 1 results; expected a table and ids for each result}}
  %0 = ait.grouped_embedding %t, %i, %t : !ait.tensor<4 x 16 x f16>
}

// -----

ait.graph @table_of_a_group(%t: !ait.tensor<100 x 16 x f16>, %u: !ait.tensor<16 x f16>, %i: !ait.tensor<4 x i64>) {
  // expected-error @below {{ait.grouped_embedding: table 1 must have 2 dims, got [16]}}
  %0, %1 = ait.grouped_embedding %t, %i, %u, %i : !ait.tensor<4 x 16 x f16>, !ait.tensor<4 x f16>
}

// -----

ait.graph @ids_of_a_group(%t: !ait.tensor<100 x 16 x f16>, %i: !ait.tensor<4 x i64>, %j: !ait.tensor<4 x i8>) {
  // expected-error @below {{ait.grouped_embedding: ids 1 must be i32 or i64, got i8}}
  %0, %1 = ait.grouped_embedding %t, %i, %t, %j : !ait.tensor<4 x 16 x f16>, !ait.tensor<4 x 16 x f16>
}

// -----

ait.graph @mixed_tables(%t: !ait.tensor<100 x 16 x f16>, %u: !ait.tensor<100 x 16 x f32>, %i: !ait.tensor<4 x i64>) {
  // expected-error @below {{ait.grouped_embedding: table 1 has element type f32, but table 0 f16}}
  %0, %1 = ait.grouped_embedding %t, %i, %u, %i : !ait.tensor<4 x 16 x f16>, !ait.tensor<4 x 16 x f32>
}

// -----

ait.graph @mixed_ids(%t: !ait.tensor<100 x 16 x f16>, %i: !ait.tensor<4 x i64>, %j: !ait.tensor<4 x i32>) {
  // expected-error @below {{ait.grouped_embedding: ids 1 has element type i32, but ids 0 i64}}
  %0, %1 = ait.grouped_embedding %t, %i, %t, %j : !ait.tensor<4 x 16 x f16>, !ait.tensor<4 x 16 x f16>
}

// -----

ait.graph @twice(%x: !ait.tensor<4 x 5 x f16>, %i: !ait.tensor<3 x i64>) {
  // expected-error @below {{ait.gather: dims [0, 0] are not one or more different dims of [4, 5]}}
  %0 = ait.gather %x at(%i, %i) dims [0, 0] kept [] : !ait.tensor<3 x f16>
}

// -----

ait.graph @outside(%x: !ait.tensor<4 x 5 x f16>, %i: !ait.tensor<3 x i64>) {
  // expected-error @below {{ait.gather: dims [2] are not one or more different dims of [4, 5]}}
  %0 = ait.gather %x at(%i) dims [2] kept [0] : !ait.tensor<3 x f16>
}

// -----

ait.graph @count(%x: !ait.tensor<4 x 5 x f16>, %i: !ait.tensor<3 x i64>) {
  // expected-error @below {{ait.gather: 1 index tensors for 2 dims}}
  %0 = ait.gather %x at(%i) dims [0, 1] kept [] : !ait.tensor<3 x f16>
}

// -----

ait.graph @kept(%x: !ait.tensor<4 x 5 x 6 x f16>, %i: !ait.tensor<3 x 1 x i64>) {
  // expected-error @below {{ait.gather: kept [1, 1] must name 2 different dims below 64, one for each dim without indices}}
  %0 = ait.gather %x at(%i) dims [0] kept [1, 1] : !ait.tensor<3 x 5 x f16>
}

// -----

ait.graph @mixed(%x: !ait.tensor<4 x 5 x f16>, %i: !ait.tensor<3 x i64>, %j: !ait.tensor<3 x i32>) {
  // expected-error @below {{ait.gather: indices must be all i32 or all i64, got i64, i32}}
  %0 = ait.gather %x at(%i, %j) dims [0, 1] kept [] : !ait.tensor<3 x f16>
}

// -----

ait.graph @disagree(%x: !ait.tensor<4 x 5 x f16>, %i: !ait.tensor<3 x i64>, %j: !ait.tensor<2 x i64>) {
  // expected-error @below {{ait.gather: dim 0 of index 1 is 2, but index 0 has 3 there (shapes [3], [2], [1])}}
  %0 = ait.gather %x at(%i, %j) dims [0, 1] kept [] : !ait.tensor<3 x f16>
}

// -----

ait.graph @larger(%x: !ait.tensor<4 x 5 x f16>, %i: !ait.tensor<3 x 6 x i64>) {
  // expected-error @below {{ait.gather: dim 1 of the space is 6, which is not proved to fit into dim 1 of the input, 5}}
  %0 = ait.gather %x at(%i) dims [0] kept [1] : !ait.tensor<3 x 6 x f16>
}

// -----

ait.graph @values(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f32>, %i: !ait.tensor<3 x 1 x i64>) {
  // expected-error @below {{ait.scatter: values are f32, the tensor is f16}}
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] : !ait.tensor<4 x 5 x f16>
}

// -----

ait.graph @booleans(%x: !ait.tensor<4 x 5 x i1>, %v: !ait.tensor<3 x 5 x i1>, %i: !ait.tensor<3 x 1 x i64>) {
  // expected-error @below {{ait.scatter: cannot add booleans; cast them to integers, or use 'set'}}
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] : !ait.tensor<4 x 5 x i1>
}

// -----

ait.graph @kind(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f16>, %i: !ait.tensor<3 x 1 x i64>) {
  // expected-error @below {{expected one of set, add, mul, max, min}}
  %0 = ait.scatter mean %x, %v at(%i) dims [0] kept [1] : !ait.tensor<4 x 5 x f16>
}

// -----

ait.graph @wide(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 7 x f16>, %i: !ait.tensor<3 x 1 x i64>) {
  // expected-error @below {{ait.scatter: dim 1 of the space is 7, which is not proved to fit into dim 1 of the tensor, 5}}
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] : !ait.tensor<4 x 5 x f16>
}

// -----

ait.graph @order_length(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f16>, %i: !ait.tensor<3 x 1 x i64>, %k: !ait.tensor<3 x i32>, %p: !ait.tensor<4 x i32>) {
  // expected-error @below {{ait.scatter: the order's places are !ait.tensor<4 x i32>, expected !ait.tensor<3 x i32>, one for each place}}
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] order %k, %p : !ait.tensor<4 x 5 x f16>
}

// -----

ait.graph @order_type(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f16>, %i: !ait.tensor<3 x 1 x i64>, %k: !ait.tensor<3 x i64>, %p: !ait.tensor<3 x i32>) {
  // expected-error @below {{ait.scatter: the order's keys are !ait.tensor<3 x i64>, expected !ait.tensor<3 x i32>, one for each place}}
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] order %k, %p : !ait.tensor<4 x 5 x f16>
}

// -----

ait.graph @order_of_rows(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f16>, %i: !ait.tensor<3 x 5 x i64>, %k: !ait.tensor<3 x i32>) {
  // expected-error @below {{ait.scatter: an order is for indices that are the same along kept dims and as large as the space along the others}}
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] order %k, %k : !ait.tensor<4 x 5 x f16>
}

// -----

ait.graph @order_of_one(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f16>, %i: !ait.tensor<1 x 1 x i64>, %k: !ait.tensor<3 x i32>) {
  // expected-error @below {{ait.scatter: an order is for indices that are the same along kept dims and as large as the space along the others}}
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] order %k, %k : !ait.tensor<4 x 5 x f16>
}

// -----

ait.graph @order_of_keys_alone(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f16>, %i: !ait.tensor<3 x 1 x i64>, %k: !ait.tensor<3 x i32>) {
  // expected-error @below {{expected keys and places after 'order', got 1 operands}}
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] order %k : !ait.tensor<4 x 5 x f16>
}

// -----

ait.graph @order_swapped(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f16>, %i: !ait.tensor<3 x 1 x i64>, %j: !ait.tensor<3 x i64>) {
  %k, %p = ait.order %j sizes [4] : !ait.tensor<3 x i32>, !ait.tensor<3 x i32>
  // expected-error @below {{ait.scatter: the order is not the keys and then the places of one ait.order}}
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] order %p, %k : !ait.tensor<4 x 5 x f16>
  ait.output "y" %0 : !ait.tensor<4 x 5 x f16>
}

// -----

ait.graph @order_of_others(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f16>, %i: !ait.tensor<3 x 1 x i64>, %j: !ait.tensor<3 x i64>) {
  %k, %p = ait.order %j sizes [5] : !ait.tensor<3 x i32>, !ait.tensor<3 x i32>
  // expected-error @below {{ait.scatter: the order is for indices into [5], but the indexed dims are [4]}}
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] order %k, %p : !ait.tensor<4 x 5 x f16>
  ait.output "y" %0 : !ait.tensor<4 x 5 x f16>
}

// -----

ait.graph @order_of_other_indices(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f16>, %i: !ait.tensor<3 x 1 x i64>, %j: !ait.tensor<3 x i64>) {
  %k, %p = ait.order %j sizes [4] : !ait.tensor<3 x i32>, !ait.tensor<3 x i32>
  // expected-error @below {{ait.scatter: index 0 of the order is not proved to have the elements of index 0 of the scatter; make the order of the same value, reshaped to leave out the kept dims}}
  %0 = ait.scatter add %x, %v at(%i) dims [0] kept [1] order %k, %p : !ait.tensor<4 x 5 x f16>
  ait.output "y" %0 : !ait.tensor<4 x 5 x f16>
}

// -----

// The sources of the edges are not their targets.
ait.graph @order_of_other_row(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f16>, %i: !ait.tensor<2 x 3 x i64>) {
  %0 = ait.slice %i offsets [0, 0] : !ait.tensor<1 x 3 x i64>
  %1 = ait.reshape %0 : !ait.tensor<3 x i64>
  %k, %p = ait.order %1 sizes [4] : !ait.tensor<3 x i32>, !ait.tensor<3 x i32>
  %2 = ait.slice %i offsets [1, 0] : !ait.tensor<1 x 3 x i64>
  %3 = ait.reshape %2 : !ait.tensor<3 x 1 x i64>
  // expected-error @below {{ait.scatter: index 0 of the order is not proved to have the elements of index 0 of the scatter}}
  %4 = ait.scatter add %x, %v at(%3) dims [0] kept [1] order %k, %p : !ait.tensor<4 x 5 x f16>
  ait.output "y" %4 : !ait.tensor<4 x 5 x f16>
}

// -----

ait.graph @order_of_computed_indices(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 5 x f16>, %i: !ait.tensor<3 x 1 x i64>) {
  %0 = ait.neg %i : !ait.tensor<3 x 1 x i64>
  %1 = ait.reshape %0 : !ait.tensor<3 x i64>
  %k, %p = ait.order %1 sizes [4] : !ait.tensor<3 x i32>, !ait.tensor<3 x i32>
  %2 = ait.abs %i : !ait.tensor<3 x 1 x i64>
  // expected-error @below {{ait.scatter: index 0 of the order is not proved to have the elements of index 0 of the scatter}}
  %3 = ait.scatter add %x, %v at(%2) dims [0] kept [1] order %k, %p : !ait.tensor<4 x 5 x f16>
  ait.output "y" %3 : !ait.tensor<4 x 5 x f16>
}

// -----

ait.graph @order_of_other_pairs(%x: !ait.tensor<4 x 5 x f16>, %v: !ait.tensor<3 x 3 x f16>, %i: !ait.tensor<3 x 1 x i64>, %j: !ait.tensor<3 x i64>) {
  %0 = ait.reshape %i : !ait.tensor<1 x 3 x i64>
  %1 = ait.reshape %j : !ait.tensor<3 x 1 x i64>
  %k, %p = ait.order %0, %1 sizes [4, 5] : !ait.tensor<9 x i32>, !ait.tensor<9 x i32>
  // expected-error @below {{ait.scatter: index 0 of the order is [1, 3], expected [3, 1]}}
  %2 = ait.scatter add %x, %v at(%i, %j) dims [0, 1] kept [] order %k, %p : !ait.tensor<4 x 5 x f16>
  ait.output "y" %2 : !ait.tensor<4 x 5 x f16>
}
