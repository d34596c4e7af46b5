// RUN: ait-opt %s --split-input-file --verify-diagnostics

ait.graph @table(%table: !ait.tensor<100 x i32>, %ids: !ait.tensor<4 x i64>, %o: !ait.tensor<2 x i64>) {
  // expected-error @below {{ait.embedding_bag: the table must be floating-point of two dims, got !ait.tensor<100 x i32>}}
  %0 = ait.embedding_bag sum %table, %ids, %o : !ait.tensor<2 x i32>
}

// -----

ait.graph @ids(%table: !ait.tensor<100 x 8 x f16>, %ids: !ait.tensor<4 x f16>, %o: !ait.tensor<2 x i64>) {
  // expected-error @below {{ait.embedding_bag: ids must be i32 or i64 of one dim, got !ait.tensor<4 x f16>}}
  %0 = ait.embedding_bag sum %table, %ids, %o : !ait.tensor<2 x 8 x f16>
}

// -----

ait.graph @offsets(%table: !ait.tensor<100 x 8 x f16>, %ids: !ait.tensor<4 x i64>, %o: !ait.tensor<2 x 2 x i64>) {
  // expected-error @below {{ait.embedding_bag: offsets must be i32 or i64 of one dim, got !ait.tensor<2 x 2 x i64>}}
  %0 = ait.embedding_bag sum %table, %ids, %o : !ait.tensor<2 x 8 x f16>
}

// -----

ait.graph @closed(%table: !ait.tensor<100 x 8 x f16>, %ids: !ait.tensor<4 x i64>, %o: !ait.tensor<b x i64>) dims {b = 0 to 4} {
  // expected-error @below {{ait.embedding_bag: with 'closed' there must be an offset; their number is b}}
  %0 = ait.embedding_bag sum %table, %ids, %o closed : !ait.tensor<(b - 1) x 8 x f16>
}

// -----

ait.graph @mean(%table: !ait.tensor<100 x 8 x f16>, %ids: !ait.tensor<4 x i64>, %o: !ait.tensor<2 x i64>, %w: !ait.tensor<4 x f16>) {
  // expected-error @below {{ait.embedding_bag: weights multiply the rows of a sum; the kind is mean}}
  %0 = ait.embedding_bag mean %table, %ids, %o weights %w : !ait.tensor<2 x 8 x f16>
}

// -----

ait.graph @weights(%table: !ait.tensor<100 x 8 x f16>, %ids: !ait.tensor<4 x i64>, %o: !ait.tensor<2 x i64>, %w: !ait.tensor<3 x f16>) {
  // expected-error @below {{ait.embedding_bag: weights must have the shape [4] of ids and the table's type f16, got !ait.tensor<3 x f16>}}
  %0 = ait.embedding_bag sum %table, %ids, %o weights %w : !ait.tensor<2 x 8 x f16>
}

// -----

ait.graph @padding(%table: !ait.tensor<100 x 8 x f16>, %ids: !ait.tensor<4 x i64>, %o: !ait.tensor<2 x i64>) {
  // expected-error @below {{ait.embedding_bag: padding is an id, at least 0, got -1}}
  %0 = ait.embedding_bag sum %table, %ids, %o padding -1 : !ait.tensor<2 x 8 x f16>
}

// -----

ait.graph @kind(%table: !ait.tensor<100 x 8 x f16>, %ids: !ait.tensor<4 x i64>, %o: !ait.tensor<2 x i64>) {
  // expected-error @below {{expected a kind, one of sum, mean, max}}
  %0 = ait.embedding_bag min %table, %ids, %o : !ait.tensor<2 x 8 x f16>
}

// -----

ait.graph @no_jagged(%x: !ait.tensor<t x 8 x f16>, %o: !ait.tensor<3 x i32>) dims {t = 0 to 9} {
  // expected-error @below {{ait.make_jagged: dim 0 of the result must be a jagged dim, got !ait.tensor<t x 8 x f16>; declare one as 'words = jagged(total, batch, 0 to 100)'}}
  %0 = ait.make_jagged %x offsets(%o) : !ait.tensor<t x 8 x f16>
}

// -----

ait.graph @levels(%x: !ait.tensor<t x 8 x f16>, %o: !ait.tensor<3 x i32>) dims {t = 0 to 9, words = jagged(t, 2, 0 to 5)} {
  // expected-error @below {{ait.make_jagged: takes offsets for each of the 1 levels of jagged(t, 2, 0 to 5), got 2}}
  %0 = ait.make_jagged %x offsets(%o, %o) : !ait.tensor<words x 8 x f16>
}

// -----

ait.graph @types(%x: !ait.tensor<t x 8 x f16>, %o: !ait.tensor<3 x i32>, %p: !ait.tensor<3 x i64>) dims {t = 0 to 9, words = jagged(t, 2, 0 to 5, 0 to 5)} {
  // expected-error @below {{ait.make_jagged: offsets 1 are i64, but offsets 0 i32}}
  %0 = ait.make_jagged %x offsets(%o, %p) : !ait.tensor<words x 8 x f16>
}

// -----

ait.graph @none(%x: !ait.tensor<t x 8 x f16>, %o: !ait.tensor<3 x i32>, %p: !ait.tensor<t x i32>) dims {t = 0 to 9, words = jagged(t, 2, 0 to 5, 0 to 5)} {
  // expected-error @below {{ait.make_jagged: there are t offsets 1, not proved to be at least 1}}
  %0 = ait.make_jagged %x offsets(%o, %p) : !ait.tensor<words x 8 x f16>
}

// -----

ait.graph @batch(%x: !ait.tensor<t x 8 x f16>, %o: !ait.tensor<4 x i32>) dims {t = 0 to 9, words = jagged(t, 2, 0 to 5)} {
  // expected-error @below {{ait.make_jagged: there are 4 offsets 0, expected one more than the batch, 3}}
  %0 = ait.make_jagged %x offsets(%o) : !ait.tensor<words x 8 x f16>
}

// -----

ait.graph @total(%x: !ait.tensor<7 x 8 x f16>, %o: !ait.tensor<3 x i32>) dims {t = 0 to 9, words = jagged(t, 2, 0 to 5)} {
  // expected-error @below {{ait.make_jagged: the tensor has shape [7, 8], expected t rows, the total}}
  %0 = ait.make_jagged %x offsets(%o) : !ait.tensor<words x 8 x f16>
}

// -----

ait.graph @elementwise(%x: !ait.tensor<t x 8 x f16>, %o: !ait.tensor<3 x i32>) dims {t = 0 to 9, words = jagged(t, 2, 0 to 5), others = jagged(t, 2, 0 to 5)} {
  %0 = ait.make_jagged %x offsets(%o) : !ait.tensor<words x 8 x f16>
  %1 = ait.make_jagged %x offsets(%o) : !ait.tensor<others x 8 x f16>
  // expected-error @below {{ait.add: dim 0 of rhs is others, but lhs has words there}}
  %2 = ait.add %0, %1 : !ait.tensor<words x 8 x f16>
}

// -----

ait.graph @padded(%x: !ait.tensor<2 x 6 x 8 x f16>, %t: !ait.tensor<t x f16>, %o: !ait.tensor<3 x i32>) dims {t = 0 to 9, words = jagged(t, 2, 0 to 5)} {
  // expected-error @below {{ait.padded_to_jagged: the tensor has shape [2, 6, 8], expected leading dims [2, 5], as words is declared}}
  %0 = ait.padded_to_jagged %x offsets(%o) : !ait.tensor<words x 8 x f16>
}

// -----

ait.graph @vectors(%v: !ait.tensor<2 x 8 x 6 x f16>, %m: !ait.tensor<words x 8 x 4 x f16>, %t: !ait.tensor<t x f16>, %o: !ait.tensor<3 x i32>) dims {t = 0 to 9, words = jagged(t, 2, 0 to 5)} {
  // expected-error @below {{ait.jagged_vector_product: the vectors have shape [2, 8, 6], expected [2, 8, 5]: batch, heads, the declared longest sequence}}
  %0 = ait.jagged_vector_product %v, %m offsets(%o) : !ait.tensor<2 x 8 x 4 x f16>
}

// -----

ait.graph @matrices(%v: !ait.tensor<2 x 8 x 5 x f16>, %m: !ait.tensor<words x 8 x f16>, %t: !ait.tensor<t x f16>, %o: !ait.tensor<3 x i32>) dims {t = 0 to 9, words = jagged(t, 2, 0 to 5)} {
  // expected-error @below {{ait.jagged_vector_product: the matrices must have a jagged dim of one level, heads and a width, got !ait.tensor<words x 8 x f16>}}
  %0 = ait.jagged_vector_product %v, %m offsets(%o) : !ait.tensor<2 x 8 x 4 x f16>
}

// -----

ait.graph @product_types(%v: !ait.tensor<2 x 8 x 5 x i32>, %m: !ait.tensor<words x 8 x 4 x f16>, %t: !ait.tensor<t x f16>, %o: !ait.tensor<3 x i32>) dims {t = 0 to 9, words = jagged(t, 2, 0 to 5)} {
  // expected-error @below {{ait.jagged_vector_product: needs vectors and matrices of one floating-point type, got i32 and f16}}
  %0 = ait.jagged_vector_product %v, %m offsets(%o) : !ait.tensor<2 x 8 x 4 x f16>
}

// -----

// expected-error @below {{the total of 'words' names 'total', which is not declared before it}}
ait.graph @declared(%x: !ait.tensor<4 x f16>) dims {words = jagged(total, 2, 0 to 5)} {
}
