// RUN: not ait-opt %s -p 'plan-memory{strategy="best"}' 2>&1 | filecheck %s
// RUN: not ait-opt %s -p 'plan-memory{order="size"}' 2>&1 | filecheck %s --check-prefix=OPTION
// RUN: not ait-opt %s -p 'plan-memory{strategy="search" seconds=-1}' 2>&1 | filecheck %s --check-prefix=SECONDS

// CHECK: unknown strategy 'best'; expected one of naive, greedy, search, exact
// SECONDS: seconds is -1, expected a number from 0 on
// OPTION: wrong options for pass 'plan-memory'

ait.graph @empty() {
}
