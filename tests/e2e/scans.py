"""Graphs with scans: lengths 0 and more, forwards and back, carried values that change places, are used after the loop
or not at all, loops in loops and after each other."""

from __future__ import annotations

H, XT = "!ait.tensor<b x 4 x f32>", "!ait.tensor<s x b x 4 x f32>"

BODIES = {
    "a cell with weights": """
  %w = ait.param "w" : !ait.tensor<4 x 4 x f32>
  %u = ait.param "u" : !ait.tensor<4 x 4 x f32>
  %last, %ys = ait.scan %x init(%h) with(%w, %u) dim 0 {
  ^bb0(%xt: H, %old: H, %v: !ait.tensor<4 x 4 x f32>, %r: !ait.tensor<4 x 4 x f32>):
    %0 = ait.gemm rcr %xt, %v : H
    %1 = ait.gemm rcr %old, %r : H
    %2 = ait.add %0, %1 : H
    %new = ait.tanh %2 : H
    ait.yield %new, %new : H, H
  } : H, X
  ait.output "last" %last : H
  ait.output "ys" %ys : X
""",
    "two values change places": """
  %e = ait.exp %h : H
  %a, %b, %seen = ait.scan %x init(%h, %e) dim 0 {
  ^bb0(%xt: H, %p: H, %q: H):
    %0 = ait.add %p, %xt : H
    ait.yield %q, %0, %p : H, H, H
  } : H, H, X
  ait.output "a" %a : H
  ait.output "b" %b : H
  ait.output "seen" %seen : X
""",
    "what the loop begins with is used after it": """
  %e = ait.exp %h : H
  %k = ait.scan %x init(%e) dim 0 {
  ^bb0(%xt: H, %p: H):
    %0 = ait.mul %p, %xt : H
    %1 = ait.sin %0 : H
    ait.yield %1 : H
  } : H
  %d = ait.sub %k, %e : H
  %m = ait.softmax %e dim 1 : H
  ait.output "d" %d : H
  ait.output "m" %m : H
""",
    "in reverse along the second dim": """
  %t = ait.permute %x [1, 0, 2] : !ait.tensor<b x s x 4 x f32>
  %k, %ys = ait.scan %t init(%h) dim 1 reverse {
  ^bb0(%xt: H, %p: H):
    %0 = ait.add %p, %xt : H
    %1 = ait.cos %0 : H
    ait.yield %1, %0 : H, H
  } : H, !ait.tensor<b x s x 4 x f32>
  ait.output "k" %k : H
  ait.output "ys" %ys : !ait.tensor<b x s x 4 x f32>
""",
    "a carried value that is stacked along the second dim, in reverse": """
  %t = ait.permute %x [1, 0, 2] : !ait.tensor<b x s x 4 x f32>
  %k, %e, %ys, %zs = ait.scan %t init(%h, %h) dim 1 reverse {
  ^bb0(%xt: H, %p: H, %q: H):
    %0 = ait.add %p, %xt : H
    %1 = ait.cos %0 : H
    ait.yield %1, %1, %1, %1 : H, H, H, H
  } : H, H, !ait.tensor<b x s x 4 x f32>, !ait.tensor<b x s x 4 x f32>
  %n = ait.exp %ys : !ait.tensor<b x s x 4 x f32>
  ait.output "k" %k : H
  ait.output "e" %e : H
  ait.output "n" %n : !ait.tensor<b x s x 4 x f32>
  ait.output "zs" %zs : !ait.tensor<b x s x 4 x f32>
""",
    "no carried value, and slices as they are": """
  %g = ait.reduce sum %h dims [0] : !ait.tensor<4 x f32>
  %ys, %zs, %gs = ait.scan %x with(%g) dim 0 {
  ^bb0(%xt: H, %c: !ait.tensor<4 x f32>):
    %0 = ait.softmax %xt dim 1 : H
    %1 = ait.mul %0, %c : H
    ait.yield %1, %xt, %c : H, H, !ait.tensor<4 x f32>
  } : X, X, !ait.tensor<s x 4 x f32>
  ait.output "ys" %ys : X
  ait.output "zs" %zs : X
  ait.output "gs" %gs : !ait.tensor<s x 4 x f32>
""",
    "one scan after another, and back": """
  %k, %ys = ait.scan %x init(%h) dim 0 {
  ^bb0(%xt: H, %p: H):
    %0 = ait.sub %xt, %p : H
    ait.yield %0, %0 : H, H
  } : H, X
  %j, %zs = ait.scan %ys, %x init(%k) dim 0 reverse {
  ^bb0(%yt: H, %xt: H, %p: H):
    %0 = ait.mul %yt, %p : H
    %1 = ait.add %0, %xt : H
    %2 = ait.sin %1 : H
    ait.yield %2, %2 : H, H
  } : H, X
  %w = ait.param "w" : !ait.tensor<3 x 4 x f32>
  %p = ait.gemm rcr %zs, %w : !ait.tensor<s x b x 3 x f32>
  ait.output "j" %j : H
  ait.output "k" %k : H
  ait.output "p" %p : !ait.tensor<s x b x 3 x f32>
""",
    "a scan in a scan": """
  %z = ait.constant 0.0 : !ait.tensor<4 x f32>
  %k, %rows = ait.scan %x init(%h) with(%z) dim 0 {
  ^bb0(%xt: H, %p: H, %zero: !ait.tensor<4 x f32>):
    %sum, %sums = ait.scan %xt, %p init(%zero) dim 0 {
    ^bb1(%a: !ait.tensor<4 x f32>, %b: !ait.tensor<4 x f32>, %t: !ait.tensor<4 x f32>):
      %0 = ait.mul %a, %b : !ait.tensor<4 x f32>
      %1 = ait.add %t, %0 : !ait.tensor<4 x f32>
      ait.yield %1, %1 : !ait.tensor<4 x f32>, !ait.tensor<4 x f32>
    } : !ait.tensor<4 x f32>, H
    %2 = ait.add %sums, %p : H
    %3 = ait.tanh %2 : H
    ait.yield %3, %sum : H, !ait.tensor<4 x f32>
  } : H, !ait.tensor<s x 4 x f32>
  ait.output "k" %k : H
  ait.output "rows" %rows : !ait.tensor<s x 4 x f32>
""",
    "counters and rank 0": """
  %c = ait.constant 0 : !ait.tensor<i64>
  %one = ait.constant 1 : !ait.tensor<i64>
  %n, %total, %counts = ait.scan %x init(%c, %c) with(%one) dim 0 {
  ^bb0(%xt: H, %k: !ait.tensor<i64>, %t: !ait.tensor<i64>, %i: !ait.tensor<i64>):
    %0 = ait.add %k, %i : !ait.tensor<i64>
    %1 = ait.add %t, %0 : !ait.tensor<i64>
    ait.yield %0, %1, %k : !ait.tensor<i64>, !ait.tensor<i64>, !ait.tensor<i64>
  } : !ait.tensor<i64>, !ait.tensor<i64>, !ait.tensor<s x i64>
  ait.output "n" %n : !ait.tensor<i64>
  ait.output "total" %total : !ait.tensor<i64>
  ait.output "counts" %counts : !ait.tensor<s x i64>
""",
    "views of what is captured and scanned": """
  %l, %r = ait.split %x dim 2 : !ait.tensor<s x b x 1 x f32>, !ait.tensor<s x b x 3 x f32>
  %e = ait.expand %h : X
  %v = ait.slice %h offsets [0, 1] : !ait.tensor<b x 3 x f32>
  %k, %ys = ait.scan %l, %r, %e init(%v) with(%v, %h) dim 0 {
  ^bb0(%lt: !ait.tensor<b x 1 x f32>, %rt: !ait.tensor<b x 3 x f32>, %et: H, %p: !ait.tensor<b x 3 x f32>,
       %c: !ait.tensor<b x 3 x f32>, %d: H):
    %0 = ait.add %rt, %p : !ait.tensor<b x 3 x f32>
    %1 = ait.mul %0, %c : !ait.tensor<b x 3 x f32>
    %2 = ait.softmax %1 dim 1 : !ait.tensor<b x 3 x f32>
    %3 = ait.concat %2, %lt dim 1 : H
    %4 = ait.add %3, %et : H
    %5 = ait.sub %4, %d : H
    ait.yield %2, %5 : !ait.tensor<b x 3 x f32>, H
  } : !ait.tensor<b x 3 x f32>, X
  ait.output "k" %k : !ait.tensor<b x 3 x f32>
  ait.output "ys" %ys : X
""",
    "a static length, unrolled, and one that is not": """
  %q = ait.constant [0.5, 1.5, -2.5] : !ait.tensor<3 x f32>
  %k, %ys = ait.scan %q init(%h) dim 0 reverse {
  ^bb0(%qt: !ait.tensor<f32>, %p: H):
    %0 = ait.mul %p, %qt : H
    ait.yield %0, %p : H, H
  } : H, !ait.tensor<3 x b x 4 x f32>
  %i = ait.constant 0.125 : !ait.tensor<70 x f32>
  %j = ait.scan %i init(%h) dim 0 {
  ^bb0(%qt: !ait.tensor<f32>, %p: H):
    %0 = ait.sub %p, %qt : H
    ait.yield %0 : H
  } : H
  ait.output "k" %k : H
  ait.output "ys" %ys : !ait.tensor<3 x b x 4 x f32>
  ait.output "j" %j : H
""",
    "results that nobody uses": """
  %k, %j, %ys = ait.scan %x init(%h, %h) dim 0 {
  ^bb0(%xt: H, %p: H, %q: H):
    %0 = ait.add %p, %xt : H
    ait.yield %0, %p, %0 : H, H, H
  } : H, H, X
  ait.output "j" %j : H
""",
}


def graph(body: str) -> str:
    """A graph on `x`, s slices of b rows, and `h`, b rows."""
    text = f"ait.graph @g(%x: X, %h: H) dims {{b = 0 to 3, s = 0 to 5}} {{{body}}}\n"
    return text.replace("H", H).replace("X", XT)


SCANS = {name: graph(body) for name, body in BODIES.items()}
