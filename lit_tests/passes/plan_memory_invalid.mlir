// RUN: not ait-opt %s -p 'plan-memory{strategy="best"}' 2>&1 | filecheck %s
// RUN: not ait-opt %s -p 'plan-memory{order="size"}' 2>&1 | filecheck %s --check-prefix=OPTION

// CHECK: unknown strategy 'best'; expected one of naive, greedy
// OPTION: wrong options for pass 'plan-memory'

ait.graph @empty() {
}
