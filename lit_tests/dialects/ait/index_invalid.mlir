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
