"""Texts of generated loops that networks have. Words in capitals are sizes, `S` is the type of scalars."""

from __future__ import annotations

import re

SOFTMAX = """for (r = ROWS, c = COLS) {
  %m = ait.fold max for (k = COLS) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S
  %s = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %d = ait.sub %v, %m : S
    %e = ait.exp %d : S
    ait.yield %e : S } : S
  %v = ait.at %a_[r, c] : S
  %d = ait.sub %v, %m : S
  %e = ait.exp %d : S
  %y = ait.div %e, %s : S
  ait.yield %y : S
}"""
LOGSUMEXP = """for (r = ROWS) {
  %m = ait.fold max for (k = COLS) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S
  %s = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %d = ait.sub %v, %m : S
    %e = ait.exp %d : S
    ait.yield %e : S } : S
  %l = ait.log %s : S
  %y = ait.add %l, %m : S
  ait.yield %y : S
}"""
MIDDLE = """for (r = OUTER, w = ROWS, c = COLS) {
  %m = ait.fold max for (k = ROWS) { %v = ait.at %a_[r, k, c] : S
    ait.yield %v : S } : S
  %s = ait.fold add for (k = ROWS) { %v = ait.at %a_[r, k, c] : S
    %d = ait.sub %v, %m : S
    %e = ait.exp %d : S
    ait.yield %e : S } : S
  %v = ait.at %a_[r, w, c] : S
  %d = ait.sub %v, %m : S
  %e = ait.exp %d : S
  %y = ait.div %e, %s : S
  ait.yield %y : S
}"""
VARIANCE = """for (r = OUTER, c = COLS) {
  %n = ait.constant COUNT : S
  %s = ait.fold add for (k = ROWS) { %v = ait.at %a_[r, k, c] : S
    ait.yield %v : S } : S
  %mean = ait.div %s, %n : S
  %q = ait.fold add for (k = ROWS) { %v = ait.at %a_[r, k, c] : S
    %d = ait.sub %v, %mean : S
    %dd = ait.mul %d, %d : S
    ait.yield %dd : S } : S
  %y = ait.div %q, %n : S
  ait.yield %y : S
}"""
COSINE = """for (r = ROWS) {
  %xy = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %w = ait.at %b_[r, k] : S
    %p = ait.mul %v, %w : S
    ait.yield %p : S } : S
  %xx = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %p = ait.mul %v, %v : S
    ait.yield %p : S } : S
  %yy = ait.fold add for (k = COLS) { %v = ait.at %b_[r, k] : S
    %p = ait.mul %v, %v : S
    ait.yield %p : S } : S
  %n = ait.mul %xx, %yy : S
  %e = ait.constant 1.0e-16 : S
  %c = ait.max %n, %e : S
  %i = ait.rsqrt %c : S
  %y = ait.mul %xy, %i : S
  ait.yield %y : S
}"""
_STATISTICS = """
  %n = ait.constant COUNT : S
  %s = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S
  %mean = ait.div %s, %n : S
  %q = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %d = ait.sub %v, %mean : S
    %dd = ait.mul %d, %d : S
    ait.yield %dd : S } : S
  %var = ait.div %q, %n : S"""
"""The mean and the variance of a row."""
MOMENTS = f"""for (r = ROWS) {{{_STATISTICS}
  ait.yield %var, %mean : S, S
}}"""
NORMED = """for (r = ROWS) {
  %xx = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %p = ait.mul %v, %v : S
    ait.yield %p : S } : S
  %n = ait.sqrt %xx : S
  %xy = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %q = ait.div %v, %n : S
    %w = ait.at %b_[r, k] : S
    %p = ait.mul %q, %w : S
    ait.yield %p : S } : S
  ait.yield %xy : S
}"""
PICKED = """for (r = ROWS) {
  %m = ait.fold max for (k = COLS) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S
  %s = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %d = ait.sub %v, %m : S
    %e = ait.exp %d : S
    ait.yield %e : S } : S
  %i = ait.at %b_[r] : i64
  %x = ait.at %a_[r, %i] : S
  %y = ait.sub %x, %m : S
  %z = ait.div %y, %s : S
  ait.yield %z : S
}"""
LAYER_NORM = f"""for (r = ROWS, c = COLS) {{{_STATISTICS}
  %eps = ait.constant 1.0e-5 : S
  %sum = ait.add %var, %eps : S
  %scale = ait.rsqrt %sum : S
  %v = ait.at %a_[r, c] : S
  %d = ait.sub %v, %mean : S
  %z = ait.mul %d, %scale : S
  %g = ait.at %b_[c] : S
  %y = ait.mul %z, %g : S
  ait.yield %y : S
}}"""
GROUP_NORM = """for (n = N, ch = 2*W, p = PLACES) {
  %n = ait.constant COUNT : S
  %s = ait.fold add for (k = W, l = PLACES) { %v = ait.at %a_[n, k + W*(ch floordiv W), l] : S
    ait.yield %v : S } : S
  %mean = ait.div %s, %n : S
  %q = ait.fold add for (k = W, l = PLACES) { %v = ait.at %a_[n, k + W*(ch floordiv W), l] : S
    %d = ait.sub %v, %mean : S
    %dd = ait.mul %d, %d : S
    ait.yield %dd : S } : S
  %var = ait.div %q, %n : S
  %v = ait.at %a_[n, ch, p] : S
  %d = ait.sub %v, %mean : S
  %z = ait.div %d, %var : S
  %g = ait.at %b_[ch] : S
  %y = ait.mul %z, %g : S
  ait.yield %y : S
}"""
DIVERGENCE = """for (r = ROWS) {
  %m = ait.fold max for (k = COLS) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S
  %n = ait.fold max for (k = COLS) { %v = ait.at %b_[r, k] : S
    %w = ait.silu %v : S
    ait.yield %w : S } : S
  %s = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %d = ait.sub %v, %m : S
    %e = ait.exp %d : S
    ait.yield %e : S } : S
  %t = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %d = ait.sub %v, %m : S
    %e = ait.exp %d : S
    %p = ait.div %e, %s : S
    %w = ait.at %b_[r, k] : S
    %g = ait.silu %w : S
    %h = ait.sub %g, %n : S
    %q = ait.mul %p, %h : S
    ait.yield %q : S } : S
  ait.yield %t : S
}"""
SHORT_TWICE = """for (r = ROWS, c = 6) {
  %m = ait.fold max for (k = 6) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S
  %n = ait.fold min for (k = 6) { %v = ait.at %b_[r, 5 - k] : S
    ait.yield %v : S } : S
  %v = ait.at %a_[r, c] : S
  %w = ait.at %b_[r, c] : S
  %d = ait.sub %v, %n : S
  %e = ait.sub %w, %m : S
  ait.yield %d, %e : S, S
}"""
SUM_ALL = """for () {
  %s = ait.fold add for (k = ROWS, l = COLS) { %v = ait.at %a_[k, l] : S
    ait.yield %v : S } : S
  ait.yield %s : S
}"""
MEAN_FIRST = """for (c = COLS) {
  %n = ait.constant COUNT : S
  %s = ait.fold add for (k = ROWS) { %v = ait.at %a_[k, c] : S
    ait.yield %v : S } : S
  %y = ait.div %s, %n : S
  ait.yield %y : S
}"""
ARGMAX = """for (r = ROWS) {
  %m, %p = ait.fold argmax for (k = COLS) { %v = ait.at %a_[r, k] : S
    ait.yield %v : S } : S, i64
  ait.yield %m, %p : S, i64
}"""
ARGMIN_COLUMNS = """for (c = COLS) {
  %m, %p = ait.fold argmin for (k = ROWS) { %v = ait.at %a_[k, c] : S
    ait.yield %v : S } : S, i64
  ait.yield %p : i64
}"""
POOL = """for (n = N, ch = C, y = (H - 1) floordiv 2 + 1, z = (W - 1) floordiv 2 + 1) {
  %m = ait.fold max for (k = 3, l = 3) { %v = ait.at %a_[n, ch, 2*y + k - 1, 2*z + l - 1] else -inf : S
    ait.yield %v : S } : S
  ait.yield %m : S
}"""
POOL_TURNED = """for (n = N, ch = C, y = (H - 1) floordiv 2 + 1, z = (W - 1) floordiv 2 + 1) {
  %m = ait.fold max for (k = 3, l = 3) { %v = ait.at %a_[n, 2*z + l - 1, 2*y + k - 1, ch] else -inf : S
    ait.yield %v : S } : S
  %w = ait.at %b_[n, ch, y, z] : S
  %r = ait.add %m, %w : S
  ait.yield %r : S
}"""
NEAREST = """for (n = N, ch = C, y = 2*H, z = 2*W) {
  %v = ait.at %a_[n, ch, y floordiv 2, z floordiv 2] : S
  ait.yield %v : S
}"""
REFLECT = """for (n = N, y = H + 6, z = W + 6) {
  %v = ait.at %a_[n, H - 1 - max(H - 1 - FROM_Y, FROM_Y - H + 1), W - 1 - max(W - 1 - FROM_Z, FROM_Z - W + 1)] : S
  ait.yield %v : S
}""".replace("FROM_Y", "max(y - 3, 3 - y)").replace("FROM_Z", "max(z - 3, 3 - z)")
SHUFFLE = """for (n = N, ch = C, y = 4*H, z = 4*W) {
  %v = ait.at %a_[n, 16*ch + 4*(y mod 4) + z mod 4, y floordiv 4, z floordiv 4] : S
  ait.yield %v : S
}"""
WINDOWS = """for (n = N, ch = 9*C, p = (H - 2) * (W - 2)) {
  %v = ait.at %a_[n, ch floordiv 9, (ch floordiv 3) mod 3 + p floordiv (W - 2), ch mod 3 + p mod (W - 2)] : S
  ait.yield %v : S
}"""
PADDED_WINDOWS = """for (n = N, ch = 9*C, p = H * W) {
  %v = ait.at %a_[n, p floordiv W + (ch floordiv 3) mod 3 - 1, p mod W + ch mod 3 - 1, ch floordiv 9] else 0.0 : S
  %y = ait.relu %v : S
  ait.yield %y : S
}"""
PERMUTE = """for (i = I, j = J, k = K) {
  %v = ait.at %a_[k, i, j] : S
  %w = ait.at %b_[i, j, k] : S
  %y = ait.add %v, %w : S
  ait.yield %y : S
}"""
SLICED_TURNED = """for (i = I, j = J) {
  %v = ait.at %a_[j, i + 3] : S
  %e = ait.exp %v : S
  %w = ait.at %b_[i, j] : S
  %y = ait.add %e, %w : S
  ait.yield %y : S
}"""
PADDED_TURNED = """for (n = 2, y = Y + 5, ch = C) {
  %v = ait.at %a_[n, ch, y - 2] else 0.0 : S
  %w = ait.at %b_[n, ch, y - 2] else 0.5 : S
  %z = ait.constant 2.0 : S
  %d = ait.mul %w, %z : S
  %s = ait.add %v, %d : S
  %x = ait.at %c_[n, y, ch] : S
  %y = ait.sub %s, %x : S
  ait.yield %y, %s : S, S
}"""
THREE_ORDERS = """for (i = I, j = J, k = K) {
  %v = ait.at %a_[k, j, i] : S
  %w = ait.at %b_[i, k, j] : S
  %s = ait.add %v, %w : S
  %x = ait.at %c_[k] : S
  %y = ait.mul %s, %x : S
  ait.yield %y : S
}"""
PADDED_BOXES = """for (w = W + 4, h = H + 3, ch = C, d = D + 2) {
  %v = ait.at %a_[ch, d - 1, h - 2, w - 3] else 0.0 : S
  %w = ait.at %b_[ch, d - 1, h - 2, w - 3] else 0.5 : S
  %y = ait.add %v, %w : S
  ait.yield %y : S
}"""
SHUFFLED_BOXES = """for (n = N, h = H, w = 2 * W) {
  %v = ait.at %a_[n, w mod 2, w floordiv 2, H - 1 - h] : S
  ait.yield %v : S
}"""
GATHER = """for (r = ROWS, c = COLS) {
  %i = ait.at %b_[r, c] : i64
  %v = ait.at %a_[r, %i] : S
  ait.yield %v : S
}"""
EMBEDDING = """for (r = ROWS, c = COLS) {
  %i = ait.at %b_[r] : i64
  %v = ait.at %a_[%i, c] else 0.5 : S
  ait.yield %v : S
}"""
TRIL = """for (r = ROWS, c = COLS) {
  %i = ait.index (r) : i64
  %j = ait.index (c) : i64
  %b = ait.compare le %j, %i : i1
  %v = ait.at %a_[r, c] : S
  %z = ait.constant 0.0 : S
  %y = ait.where %b, %v, %z : S
  ait.yield %y, %b : S, i1
}"""
FOLD = """for (n = N, z = 2*L + 1) {
  %s = ait.fold add for (k = 3) { %v = ait.at %a_[n, k, (z - k) floordiv 2] else 0.0 : S
    %z = ait.constant 0.0 : S
    %none = ait.constant 0 : i64
    %rest = ait.index ((z - k) mod 2) : i64
    %hit = ait.compare eq %rest, %none : i1
    %w = ait.where %hit, %v, %z : S
    ait.yield %w : S } : S
  ait.yield %s : S
}"""
TURNED_NORM = """for (c = COLS, r = ROWS) {
  %n = ait.constant COUNT : S
  %q = ait.fold add for (k = COLS) { %v = ait.at %a_[r, k] : S
    %vv = ait.mul %v, %v : S
    ait.yield %vv : S } : S
  %m = ait.div %q, %n : S
  %v = ait.at %a_[r, c] : S
  %g = ait.at %b_[c] : S
  %w = ait.mul %v, %g : S
  %y = ait.div %w, %m : S
  ait.yield %y, %m : S, S
}"""
"""A norm of rows with the permute behind it, and the mean square of each row."""
PARTS_TURNED = """for (n = OUTER, r = ROWS, h = PARTS, c = COLS) {
  %m = ait.fold max for (k = PARTS, l = COLS) { %v = ait.at %a_[n, k, l, r] : S
    ait.yield %v : S } : S
  %v = ait.at %a_[n, h, c, r] : S
  %d = ait.sub %v, %m : S
  ait.yield %d : S
}"""
"""Rows of two dims that lie across the operand, less their maximum."""
SCALED = """for (r = ROWS, c = COLS) {
  %m = ait.fold max for (k = COLS) { %v = ait.at %a_[r, k] : S
    %w = ait.abs %v : S
    ait.yield %w : S } : S
  %e = ait.constant 1.0e-3 : S
  %s = ait.max %m, %e : S
  %v = ait.at %a_[r, c] : S
  %y = ait.div %v, %s : S
  %d = ait.add %v, %v : S
  ait.yield %y, %s, %d : S, S, S
}"""
"""A row divided by its largest magnitude, that number, and the row doubled."""
SCALED_COLUMNS = SCALED.replace("[r, k]", "[k, c]").replace("k = COLS", "k = ROWS")


_NORMED = """
  %v = ait.at %a_[r, SIZE*g + c] : S
  %u = ait.mul %v, %n : S
  %w = ait.at %b_[SIZE*g + c] : S
  %z = ait.mul %u, %w : S"""
SEGMENTS = f"""for (r = ROWS, g = GROUPS, c = SIZE) {{
  %xx = ait.fold add for (k = GROUPS*SIZE) {{ %v = ait.at %a_[r, k] : S
    %p = ait.mul %v, %v : S
    ait.yield %p : S }} : S
  %e = ait.constant 1.0e-3 : S
  %sum = ait.add %xx, %e : S
  %n = ait.rsqrt %sum : S
  %m = ait.fold max for (k = SIZE) {{{_NORMED.replace("+ c", "+ k")}
    %q = ait.abs %z : S
    ait.yield %q : S }} : S
  %s = ait.max %m, %e : S{_NORMED}
  %y = ait.div %z, %s : S
  ait.yield %y, %s : S, S
}}"""
"""A normalised row whose segments are divided by their largest magnitudes, and these numbers."""
SEGMENTS_AND_ROW = SEGMENTS.replace("yield %y, %s : S, S", "yield %y, %s, %z : S, S, S")
"""The same, and the normalised row itself."""


def put(text: str, **sizes: object) -> str:
    """The text with sizes in place of the words in capitals."""
    for name, size in sizes.items():
        text = re.sub(rf"\b{name}\b", str(size) if str(size).replace(".", "").isalnum() else f"({size})", text)
    return text


def image(text: str, n: int, c: int, h: object, w: object) -> str:
    return put(text, N=n, C=c, H=h, W=w)
