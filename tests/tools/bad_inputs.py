"""Texts that must be refused, each with the expected error."""

from __future__ import annotations

DEEP = 20_000
LONG = "9" * 6_000


def graph(*lines: str) -> str:
    """A graph around some lines, which start at line 2."""
    return "\n".join(["ait.graph @f(%x: !ait.tensor<b x 8 x f16>) dims {b = 1 to 4} {", *lines, "}", ""])


def with_type(type_: str, dims: str = "b = 1 to 4") -> str:
    """A graph with one input of a type."""
    return f"ait.graph @f(%x: {type_}) dims {{{dims}}} {{}}"


def with_dim(dim: str, dims: str = "b = 1 to 4") -> str:
    """A graph with one input that has a dim."""
    return with_type(f"!ait.tensor<({dim}) x f16>", dims)


RELU = "!ait.tensor<b x 8 x f16>"

MANY = ", ".join(f"b{i} = 1 to 9" for i in range(1_000))
NOT_PROVED = r"1:1: error: ait.graph: dim .* is not proved to be at least 0"

BAD_INPUTS: dict[str, tuple[str | bytes, str]] = {
    # what is no IR at all
    "empty file": ("", r"1:1: error: there is no operation: the text is empty"),
    "blanks": ("  \n\n", r"1:1: error: there is no operation"),
    "comment only": ("// nothing", r"1:\d+: error: an operation expected"),
    "garbage": (")(*&^%$", r"1:1: error: an operation expected"),
    "NUL": (b"ait.graph @f() {\n\0}", r"2:1: error: the file holds a NUL character"),
    "not UTF-8": (b"ait.graph @f() {\n  \xff\n}", r"2:3: error: the file is not UTF-8: byte 0xff"),
    "encoded surrogate": (b'"\xed\xa0\x80"', r"1:2: error: the file is not UTF-8: byte 0xed"),
    "byte order mark": ("\ufeffait.graph @f() {}", r"1:1: error: Unexpected character"),
    "binary": (bytes(range(1, 256)), r"\d+:\d+: error: "),
    # malformed
    "no colon": (graph(f"  %y = ait.relu %x {RELU}"), r"2:20: error: expected ':' and the types of the results"),
    "open parenthesis": ("ait.graph @f(", r"1:13: error: Expected block argument"),
    "open region": ("ait.graph @f() {\n", r"1:16: error: "),
    "brace that is missing at the end": (
        'ait.graph @f(%x: !ait.tensor<2 x f32>) {\n  ait.output "y" %x : !ait.tensor<2 x f32>\n',
        r"2:\d+: error: expected an operation or '}', but the text ends; the '{' of line 1 is not closed",
    ),
    "something that is no operation": (
        graph("  17"),
        r"2:3: error: expected an operation or '}'; the '{' of line 1 is not",
    ),
    "float that does not fit": (
        graph("  %c = ait.constant 70000.0 : !ait.tensor<f16>"),
        r"2:3: error: ait.constant: 70000.0 does not fit in f16",
    ),
    "float of too many digits": (
        graph("  %c = ait.constant 1e999 : !ait.tensor<f64>"),
        r"2:21: error: the number does not fit in 64 bits; infinity",
    ),
    "unknown op without a near name": (
        graph("  %0 = ait.qqqqqq %x : " + RELU),
        r"2:8: error: Operation ait.qqqqqq is not registered$",
    ),
    "unterminated string": (graph('  ait.output "' + "y" * 60 + " %x"), r"2:14: error: the string is not closed"),
    "unterminated string with escapes": (graph('  ait.output "' + "\\n" * 60), r"2:14: error: "),
    "escaped byte that is no UTF-8": (
        graph('  ait.output "\\FF" %x : ' + RELU),
        r"2:14: error: string literal expected",
    ),
    "windows line ends": (graph("  oops").replace("\n", "\r\n"), r"2:3: error: Operation oops is not registered"),
    "far right": (graph(" " * 100_000 + "oops"), r"2:100001: error: Operation oops is not registered"),
    "numbers of a type without numbers": (
        '"builtin.module"() <{n = array<i321: 1>}> ({ ^bb0: }) : () -> ()',
        r"1:1: error: numbers of this type cannot be read",
    ),
    "an allocation at no place": (
        '"ait_rt.program"() <{sym_name = "p", dims = #ait.dims<>, arena = #ait.shape<4>}> ({\n'
        '  %0 = "ait_rt.alloc"() <{offset = #ait.shape<)>}> : () -> !ait_rt.buffer<4 x f16>\n}) : () -> ()',
        r"2:\d+: error: .*offset is one dim expression, got 0",
    ),
    "an arena without a size": (
        '"ait_rt.program"() <{sym_name = "p", dims = #ait.dims<>, arena = #ait.shape<)>}> ({ ^bb0: }) : () -> ()',
        r"1:1: error: .*the arena has 0 sizes, expected one",
    ),
    # names
    "unknown op": (graph("  %0 = ait.gelo %x : " + RELU), r"2:8: error: Operation ait.gelo is not registered; did you"),
    "unknown dialect": (graph("  %0 = foo.bar %x"), r"2:8: error: Operation foo.bar is not registered"),
    "unknown generic op": (graph('  "foo.bar"() : () -> ()'), r"2:4: error: Operation foo.bar is not registered"),
    "unknown type": (with_type("!ait.matrix<3>"), r"1:\d+: error: 'ait.matrix' is not registered"),
    "module without a region": ('"builtin.module"() : () -> ()', r"1:1: error: Expected 1 region"),
    "inner module without a region": (
        '"builtin.module"() ({\n  "builtin.module"() : () -> ()\n}) : () -> ()',
        r"2:3: error: Expected 1 region",
    ),
    "unknown attribute": ("builtin.module attributes {a = #ait.nothing} {}", r"1:\d+: error: 'ait.nothing' is not"),
    "two graphs of one name": ("ait.graph @f() {}\nait.graph @f() {}", r'2:1: error: Redefinition of symbol "f"'),
    "two outputs of one name": (
        graph(f'  ait.output "y" %x : {RELU}', f'  ait.output "y" %x : {RELU}'),
        r"1:1: error: ait.graph: two outputs are named 'y'",
    ),
    "redefined value": (
        graph(f"  %0 = ait.relu %x : {RELU}", f"  %0 = ait.relu %x : {RELU}"),
        r"3:3: error: SSA value",
    ),
    "use before definition": (
        graph(f"  %0 = ait.relu %1 : {RELU}", f"  %1 = ait.relu %x : {RELU}"),
        r"2:17: error: %1 is not defined above this op",
    ),
    "generic use before definition": (
        graph(f'  %0 = "ait.relu"(%1) : ({RELU}) -> {RELU}', f"  %1 = ait.relu %x : {RELU}"),
        r"2:3: error: ait.relu: operand 0 is used before its definition",
    ),
    "undefined value": (graph(f'  %0 = "ait.relu"(%nil) : ({RELU}) -> {RELU}'), r"2:19: error: values used but not"),
    "undefined block": (graph('  "ait.yield"()[^there] : () -> ()'), r"2:18: error: .*missing block declarations"),
    # types and dims
    "wrong result type": (graph("  %0 = ait.relu %x : !ait.tensor<b x 9 x f16>"), r"2:3: error: ait.relu: the result"),
    "wrong operand type": (graph('  ait.output "y" %x : !ait.tensor<f32>'), r"2:18: error: operand is used with type"),
    "undeclared dim": (with_type("!ait.tensor<c x f16>"), r"1:1: error: ait.graph: dim 'c' .* is not declared"),
    "doubly declared dim": (with_type(RELU, "b = 1 to 4, b = 1 to 5"), r"1:\d+: error: dim 'b' is declared twice"),
    "empty range": (with_type(RELU, "b = 5 to 4"), r"1:\d+: error: dim 'b' has an empty range: 5 to 4"),
    "negative range": (with_type(RELU, "b = -1 to 4"), r"1:\d+: error: expected a number"),
    "range without end": (with_type(RELU, "b = 1 to"), r"1:\d+: error: expected a number"),
    "reserved dim name": (with_type(RELU, "f16 = 1 to 4"), r"1:\d+: error: "),
    "open dims": ("ait.graph @f() dims {b = 1 to 4\n{}", r"1:21: error: no closing '}' on this line"),
    "disagreeing dims": (
        graph("  %c = ait.constant 1.0 : !ait.tensor<7 x f16>", f"  %0 = ait.add %x, %c : {RELU}"),
        r"3:3: error: ait.add: dim 0 of rhs is 7, but lhs has 8 there",
    ),
    "division by zero": (with_dim("b floordiv 0"), r"1:\d+: error: .*division by zero"),
    "mod zero": (with_dim("b mod 0"), r"1:\d+: error: .*division by zero"),
    "division by what is zero": (with_dim("4 ceildiv (b - b)"), r"1:\d+: error: .*division by zero"),
    "division by what may be zero": (
        with_dim("4 ceildiv b", "b = 0 to 4"),
        r"1:1: error: .*not proved to be at least 1",
    ),
    "hexadecimal dim": (with_type("!ait.tensor<0x10xf16>"), r"1:\d+: error: element type expected"),
    "superscript": (with_type("!ait.tensor<\u00b2 x f16>"), r"1:\d+: error: expected a number, a dim or"),
    "missing element type": (with_type("!ait.tensor<b x 8>"), r"1:\d+: error: element type expected"),
    "open type": (with_type("!ait.tensor<b x 8"), r"1:\d+: error: "),
    "too many elements": (
        with_type("!ait.tensor<1099511627776 x 1099511627776 x f16>"),
        r"1:\d+: error: .*2\^48 bytes",
    ),
    "a dim beyond what is computed": (with_dim("9223372036854775807*b"), r"1:30: error: a number that a dim is multi"),
    "a product of dims beyond what is computed": (
        with_type("!ait.tensor<(1099511627776*b) x (1099511627776*b) x f16>"),
        r"1:\d+: error: .*2\^48 bytes",
    ),
    "a product of many terms": (
        with_type(
            f"!ait.tensor<{' x '.join(['(' + ' + '.join(f'b{i}' for i in range(40)) + ')'] * 3)} x f16>",
            ", ".join(f"b{i} = 1 to 9" for i in range(40)),
        ),
        r"1:\d+: error: the bytes of .* cannot be computed",
    ),
    "strides beyond what is computed": (
        with_type("!ait.tensor<4 x b x f16> strides [4611686018427387904, 4]"),
        r"1:1: error: ait.graph: strides .* over more than 2\^48 bytes",
    ),
    "a kept dim of a gather beyond memory": (
        graph("  %y = ait.gather %x at(%x) dims [0] kept [1099511627776] : " + RELU),
        r"2:3: error: ait.gather: kept .* below 64",
    ),
    "bits beyond f32": (
        graph("  %y = ait.rms_norm %x axes 1 eps bits(-1099511627776) : " + RELU),
        r"2:3: error: .*bits\(-1099511627776\)",
    ),
    "giant splat": (
        "builtin.module attributes {a = dense<1.0> : tensor<1000000000000xf32>} {}",
        r"1:\d+: error: too large to be held in memory",
    ),
    # numbers of 6,000 digits
    "digits of a dim": (with_dim(LONG), r"1:\d+: error: the number 9+\.\.\. is beyond 64 bits"),
    "digits of a range": (with_type(RELU, f"b = 1 to {LONG}"), r"1:\d+: error: the number 9+\.\.\. is beyond 64 bits"),
    "digits of a constant": (
        graph(f"  %0 = ait.constant {LONG} : !ait.tensor<i64>"),
        r"2:21: error: the integer does not",
    ),
    "digits of an attribute": (f"builtin.module attributes {{a = {LONG}}} {{}}", r"1:\d+: error: the number has too"),
    "hexadecimal digits": (f"builtin.module attributes {{a = 0x{LONG}}} {{}}", r"1:\d+: error: the number has too"),
    "digits of a property": (graph(f"  %0 = ait.softmax %x dim {LONG} : {RELU}"), r"2:\d+: error: the number has too"),
    "digits of a type": (with_type(f"i{LONG}"), r"1:\d+: error: "),
    "digits of a result number": (graph(f'  ait.output "y" %x#{LONG} : {RELU}'), r"2:\d+: error: the number has too"),
    "digits of a result count": (graph(f"  %0:{LONG} = ait.relu %x : {RELU}"), r"2:\d+: error: the number has too"),
    # nesting
    "deep types": (with_type("!ait.tensor<" * DEEP + ">" * DEEP), r"1:\d+: error: element type expected"),
    "deep tuples": (with_type("tuple<" * DEEP + ">" * DEEP), r"1:\d+: error: nested too deeply"),
    "deep function types": (with_type("(" * DEEP + ")" * DEEP), r"1:\d+: error: nested too deeply"),
    "deep parentheses in a dim": (with_dim("(" * DEEP + "b" + ")" * DEEP), r"1:\d+: error: .*nested more than"),
    "deep calls in a dim": (with_dim("min(b, " * DEEP + "b" + ")" * DEEP), r"1:\d+: error: .*nested more than"),
    "long sum in a dim": (
        with_dim("+".join(f"b{i}" for i in range(DEEP))),
        r"1:\d+: error: a dim expression is the sum",
    ),
    "large product in a dim": (
        with_dim("*".join(["(b + c + 1)"] * DEEP)),
        r"1:\d+: error: a dim expression of \d+ parts",
    ),
    "long power in a dim": (with_dim("*".join(["b"] * DEEP)), r"1:\d+: error: a dim expression of \d+ parts"),
    # dims that are hard to prove anything about
    "many mins": (with_dim(" + ".join(f"min(b{i}, b{i + 1})" for i in range(40)) + " - 60", MANY), NOT_PROVED),
    "many divisions": (with_dim(" - ".join(f"(b{i} floordiv {i + 2})" for i in range(40)), MANY), NOT_PROVED),
    "many products": (with_dim("*".join(f"b{i}" for i in range(900)) + " - b0*b1 - b2*b3", MANY), NOT_PROVED),
    "many terms": (with_dim(" - ".join(f"b{i}" for i in range(900)), MANY), NOT_PROVED),
    "sums that may be equal": (
        f"ait.graph @f(%x: !ait.tensor<({' + '.join(f'min(b{i}, b{i + 1})' for i in range(40))}) x f16>, "
        f"%y: !ait.tensor<({' + '.join(f'max(b{i}, b{i + 1})' for i in range(40))}) x f16>) dims {{{MANY}}} {{\n"
        "  %0 = ait.add %x, %y : !ait.tensor<f16>\n}",
        r"2:3: error: ait.add: dim 0 of rhs is max",
    ),
    "deep regions": (
        graph('"ait.fused_elementwise"(%x) ({\n' * DEEP + "}) : () -> ()\n" * DEEP),
        r"\d+:\d+: error: (ops are nested more than 100 deep|nested too deeply)",
    ),
    "deep modules": ("builtin.module {\n" * DEEP + "}\n" * DEEP, r"101:1: error: ops are nested more than 100 deep"),
    "deep lists": (
        "builtin.module attributes {a = " + "[" * DEEP + "]" * DEEP + "} {}",
        r"1:\d+: error: nested too deeply",
    ),
    "deep dictionaries": (
        "builtin.module attributes {a = " + "{a = " * DEEP + "1" + "}" * DEEP + "} {}",
        r"1:\d+: error: nested too deeply",
    ),
    "deep locations": (graph(f'  ait.output "y" %x : {RELU} loc(' + "callsite(" * DEEP), r"2:\d+: error: nested too"),
}
