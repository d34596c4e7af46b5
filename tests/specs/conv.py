"""Convolutions over one to three dims: windows, pads, steps, groups, transposed ones, epilogues, views."""

from __future__ import annotations

from tests.specs.spec import Form, Spec, form
from tests.specs.tolerance import PRODUCTS

BIAS_RESIDUAL_RELU = (
    " epilogue(%c, %d) {\n  ^bb0(%acc: S, %c_in: S, %d_in: S):\n    %s = ait.add %acc, %c_in : S\n"
    "    %t = ait.add %s, %d_in : S\n    %u = ait.relu %t : S\n    ait.yield %u : S\n  }"
)

SUM_AND_RELU = BIAS_RESIDUAL_RELU.replace("ait.yield %u : S", "ait.yield %t, %u : S, S")


def conv(
    name: str,
    x: str,
    weight: str,
    result: str,
    clauses: str = "",
    fused: bool = False,
    stored: str = "",
    **options: object,
) -> Form:
    """One convolution. `fused`: with an epilogue; `stored`: also with the sum before the relu, of this element type, as
    the first result."""
    extras = [f"{weight.split(' x ')[0]} x T", f"{result} x T"] if fused or stored else []
    epilogue = SUM_AND_RELU if stored else BIAS_RESIDUAL_RELU if fused else ""
    results = [f"{result} x {t}" for t in ([stored] if stored else []) + ["T"]]
    return form(
        name, f"conv %a, %b {clauses}".rstrip() + epilogue, f"{x} x T", f"{weight} x T", *extras, to=results, **options
    )


def byte_conv(name: str, x: str, weight: str, result: str, clauses: str, w: str = "i8", scaled: str = "") -> Form:
    """One convolution of numbers of 8 bits, of `T` by `w`. `scaled`: with a scale for each channel, in this type."""
    body = (
        " epilogue(%c) {\n  ^bb0(%acc: i32, %c_in: f32):\n    %f = ait.cast %acc : f32\n    %s = ait.mul %f, %c_in : f32\n"
        f"    %r = ait.cast %s : {scaled}\n    ait.yield %{'s' if scaled == 'f32' else 'r'} : {scaled}\n  }}"
    )
    channels = weight.split(" x ")[0]
    text = f"conv %a, %b {clauses}" + (body if scaled else "")
    extras = [f"{channels} x f32"] if scaled else []
    to = f"{result} x {scaled or 'i32'}"
    return form(name, text, f"{x} x T", f"{weight} x {w}", *extras, to=to, types=("i8", "ui8"))


CONV = Spec(
    "conv",
    (
        conv("same", "b x h x 11 x 8", "24 x 3 x 3 x 8", "b x h x 11 x 24", "pad [1, 1]"),
        conv("point", "b x h x 5 x 3", "7 x 1 x 1 x 3", "b x h x 5 x 7"),
        conv(
            "steps", "b x h x 17 x 3", "16 x 7 x 7 x 3", "b x (h ceildiv 2) x 9 x 16", "stride [2, 2] pad [3, 3]", True
        ),
        conv("lines", "b x h x 11 x 16", "24 x 4 x 4 x 16", "b x h x 8 x 24", "pad [2, 0, 1, 0]", True),
        conv("long_lines", "b x h x 12 x 24", "16 x 2 x 5 x 24", "b x (h + 1) x 4 x 16", "stride [1, 2] pad [1, 0]"),
        conv("groups", "b x h x 6 x 24", "36 x 3 x 1 x 8", "b x h x 6 x 36", "pad [1, 0] groups 3", True),
        conv("groups_of_four", "b x h x 9 x 40", "40 x 3 x 3 x 4", "b x h x 9 x 40", "pad [1, 1] groups 10", True),
        conv(
            "groups_view", "b x h x 7 x 64", "48 x 3 x 2 x 32", "b x (h ceildiv 2) x 7 x 48",
            "stride [2, 1] pad [1, 1] dilation [1, 2] groups 2", True,
            strides={0: ("h*7*72", "7*72", "72", "1"), 4: ("(h ceildiv 2)*7*64", "7*64", "64", "1")}, offset=8,
        ),
        conv("groups_line", "b x h x 24", "18 x 5 x 4", "b x (h ceildiv 2) x 18", "stride [2] pad [2] groups 6"),
        conv("deep", "b x h x 7 x 40", "40 x 3 x 3 x 1", "b x (h ceildiv 2) x 4 x 40", "stride [2, 2] pad [1, 1] groups 40", True),
        conv("deep_line", "b x h x 8", "8 x 4 x 1", "b x (2*h + 2) x 8", "transposed stride [2] groups 8"),
        conv("depthwise", "b x h x 7 x 5", "5 x 3 x 3 x 1", "b x h x 7 x 5", "pad [1, 1] groups 5"),
        conv(
            "depthwise_wide", "b x h x 17 x 40", "40 x 3 x 5 x 1", "b x (h ceildiv 2) x 9 x 40",
            "stride [2, 1] pad [1, 0] dilation [1, 2] groups 40", True, both=True,
        ),
        conv("depthwise_spread", "b x h x 5 x 12", "12 x 2 x 3 x 1", "b x (2*h) x 9 x 12",
             "transposed stride [2, 2] pad [0, 1] groups 12", both=True),
        conv("depthwise_window", "b x h x 17 x 24", "24 x 5 x 7 x 1", "b x h x 17 x 24", "pad [2, 3] groups 24", True, both=True),
        conv("depthwise_line", "b x h x 16", "16 x 3 x 1", "b x (h ceildiv 2) x 16", "stride [2] pad [1] groups 16", True),
        conv(
            "dilated", "b x h x 12 x 16", "8 x 3 x 2 x 16", "b x h x 10 x 8", "pad [2, 0, 2, 1] dilation [2, 3]", True
        ),
        conv("line", "b x h x 6", "10 x 3 x 3", "b x (h ceildiv 2) x 10", "stride [2] pad [1] groups 2", True),
        conv("volume", "b x 3 x h x 4 x 5", "6 x 3 x 2 x 3 x 5", "b x 2 x h x 2 x 6", "stride [2, 1, 2] pad [1, 0, 1, 1, 1, 0]"),
        conv("spread", "b x h x 5 x 6", "8 x 4 x 3 x 6", "b x (2*h) x 9 x 8", "transposed stride [2, 2] pad [1, 1]", True),
        conv(
            "spread_groups", "b x h x 4 x 6", "4 x 2 x 3 x 3", "b x (3*h + 1) x 9 x 4",
            "transposed stride [3, 2] pad [0, 1] dilation [1, 2] output_pad [2, 0] groups 2",
        ),
        conv("wide", "b x h x 9 x 64", "72 x 3 x 3 x 64", "b x h x 9 x 72", "pad [1, 1]", True),
        conv("wide_steps", "b x h x 9 x 72", "40 x 3 x 2 x 72", "b x (h ceildiv 2) x 10 x 40", "stride [2, 1] pad [1, 1, 1, 2] dilation [1, 2]", True),
        conv("wide_groups", "b x h x 5 x 128", "64 x 3 x 3 x 64", "b x h x 5 x 64", "pad [1, 1] groups 2", True),
        conv(
            "wide_view", "b x h x 9 x 24", "40 x 5 x 3 x 24", "b x h x 5 x 40", "stride [1, 2] pad [2, 1]", True,
            strides={0: ("h*9*32", "9*32", "32", "1"), 3: ("h*5*40", "40", "h*40", "1"), 4: ("5*h*48", "5*48", "48", "1")},
            offset=8,
        ),
        conv(
            "channels_first", "b x h x 14 x 3", "16 x 3 x 5 x 3", "b x (h ceildiv 2) x 7 x 16", "stride [2, 2] pad [1, 2]", True,
            strides={0: ("42*h", "14", "1", "14*h")},
        ),
        conv("long_line", "b x h x 32", "16 x 9 x 32", "b x (h ceildiv 2) x 16", "stride [2] pad [4]", True),
        conv(
            "deep_volume", "b x 3 x h x 4 x 16", "8 x 3 x 2 x 3 x 16", "b x 2 x h x 2 x 8",
            "stride [2, 1, 2] pad [1, 0, 1, 1, 1, 0]", True,
        ),
        conv(
            "view", "b x h x 6 x 8", "8 x 3 x 3 x 8", "b x h x 6 x 8", "pad [1, 1]", True,
            strides={0: ("h*6*8", "1", "h", "h*6"), 3: ("h*6*8", "1", "8*h", "h"), 4: ("6*h*16", "6*16", "16", "1")},
            offset=1,
        ),
        # integers of 8 bits
        byte_conv("bytes", "b x h x 11 x 8", "24 x 3 x 3 x 8", "b x h x 11 x 24", "pad [1, 1]"),
        byte_conv("bytes_odd", "b x h x 9 x 3", "50 x 3 x 2 x 3", "b x (h ceildiv 2) x 10 x 50", "stride [2, 1] pad [1, 1]", w="ui8", scaled="i8"),
        byte_conv("bytes_groups", "b x h x 6 x 24", "36 x 3 x 1 x 8", "b x h x 6 x 36", "pad [1, 0] groups 3", scaled="f32"),
        byte_conv("bytes_deep", "b x h x 7 x 5", "5 x 3 x 3 x 1", "b x h x 7 x 5", "pad [1, 1] groups 5", scaled="ui8"),
        byte_conv("bytes_spread", "b x h x 5", "8 x 4 x 5", "b x (2*h + 2) x 8", "transposed stride [2]"),
        # several results
        conv("summed", "b x h x 9 x 64", "72 x 3 x 3 x 64", "b x h x 9 x 72", "pad [1, 1]", stored="T"),
        conv("summed_odd", "b x h x 9 x 6", "5 x 3 x 2 x 6", "b x h x 10 x 5", "pad [1, 1]", stored="T"),
        conv("summed_groups", "b x h x 6 x 24", "36 x 3 x 1 x 8", "b x h x 6 x 36", "pad [1, 0] groups 3", stored="T"),
        conv("summed_depthwise", "b x h x 7 x 40", "40 x 3 x 3 x 1", "b x h x 7 x 40", "pad [1, 1] groups 40", stored="T"),
        conv(
            "summed_spread", "b x h x 5 x 6", "8 x 4 x 3 x 6", "b x (2*h) x 9 x 8",
            "transposed stride [2, 2] pad [1, 1]", stored="T",
        ),
        conv("summed_wide", "b x h x 24", "18 x 5 x 24", "b x (h ceildiv 2) x 18", "stride [2] pad [2]", stored="f32",
             types=("f16", "bf16", "f32")),
        conv(
            "summed_view", "b x h x 9 x 24", "40 x 3 x 3 x 24", "b x h x 9 x 40", "pad [1, 1]", stored="T",
            strides={4: ("h*9*40", "40", "h*40", "1"), 5: ("9*h*48", "9*48", "48", "1")}, offset=8,
        ),
    ),
    PRODUCTS,
    "b = 0 to 8, h = 1 to 64",
    ({"b": 2, "h": 9}, {"b": 1, "h": 1}, {"b": 0, "h": 5}, {"b": 3, "h": 33}),
    ({"b": 2, "h": 5}, {"b": 1, "h": 1}, {"b": 0, "h": 5}),
)  # fmt: skip

SPECS = (CONV,)
