"""Dims of the builder and their arithmetic."""

from __future__ import annotations

import pytest
import sympy

from ait_mlir.frontend import BuildError, IntImm, IntVar, Tensor


def test_bounds_and_hints():
    seq = IntVar([512, 1, 128], name="seq")
    assert (seq.lower_bound(), seq.upper_bound(), seq.value()) == (1, 512, [1, 512])
    assert seq.symbols["seq"].hints == (128,)
    assert seq._attrs["name"] == "seq"
    assert seq._attrs["values"] == [1, 128, 512]


def test_one_value_is_a_constant():
    assert IntVar([5]).value() == 5
    assert IntVar([5, 5]) == 5
    assert int(IntImm(7)) == 7
    assert list(range(4))[IntImm(2)] == 2


def test_a_constant_may_have_a_name():
    four, other = IntImm(4), IntImm(4)
    four._attrs["name"] = "batch"
    assert (four._attrs["name"], other._attrs["name"], str(four)) == ("batch", "4", "4") and four == other
    with pytest.raises(BuildError, match="cannot name a dim"):
        four._attrs["name"] = "my dim"


def test_arithmetic_has_one_normal_form():
    batch, seq = IntVar([1, 64], name="batch"), IntVar([1, 512], name="seq")
    assert str(batch * 2 + 1) == "2*batch + 1"
    assert (batch + seq) * 2 - batch == batch + 2 * seq
    assert 10 - batch == -1 * batch + 10
    assert (batch * 12) / 4 == batch * 3
    assert str(seq // 2) == "seq floordiv 2"
    assert (seq % 8).upper_bound() == 7
    assert (batch * seq).upper_bound() == 64 * 512
    assert batch - batch == 0
    assert isinstance(batch - batch, IntImm)
    assert hash(batch + 1) == hash(1 + batch)


def test_derived_dims_print_and_have_names():
    batch = IntVar([1, 64], name="batch")
    assert repr(batch) == "IntVar([1, 64], name='batch')"
    assert (batch * 2).name == "2*batch"
    assert repr(batch * 2) == "IntVar(2*batch)"


def test_symbolic_value_is_sympy():
    batch, seq = IntVar([1, 64], name="batch"), IntVar([1, 512], name="seq")
    value = ((batch * 2 + 1) * (seq // 4) + seq % 3).symbolic_value()
    symbols = {s.name: s for s in value.free_symbols}
    assert all(s.is_integer and s.is_positive for s in symbols.values())
    assert value.subs({symbols["batch"]: 3, symbols["seq"]: 11}) == 7 * 2 + 2
    assert isinstance(batch.symbolic_value(), sympy.Symbol)


def test_a_quotient_rounds_down_and_is_exact_as_a_symbol():
    batch, seq = IntVar([4, 512], name="batch"), IntVar([2, 256], name="seq")
    b, s = batch.symbolic_value(), seq.symbolic_value()
    assert (batch / seq)._attrs["values"] == [0, 256] and (batch / seq).symbolic_value() == b / s
    assert (batch / 4)._attrs["values"] == [1, 128] and (batch / IntImm(4)).symbolic_value() == b / 4
    assert (512 / seq)._attrs["values"] == [2, 256] and (512 / seq).symbolic_value() == 512 / s
    assert (batch * 4) / 2 == batch * 2 and batch / 2 == batch // 2
    assert (IntImm(6) / 3)._attrs["values"] == [2] and (32 / IntImm(4)).symbolic_value() == 8


def test_a_difference_is_at_least_0():
    batch, seq = IntVar([1, 512], name="batch"), IntVar([1, 256], name="seq")
    assert (batch - seq)._attrs["values"] == [0, 511] and (31 - seq)._attrs["values"] == [0, 30]
    assert (batch - seq).symbolic_value() == batch.symbolic_value() - seq.symbolic_value()
    assert (batch - seq) + seq == batch
    x = Tensor(shape=[seq - 2, 4], name="x", is_input=True)
    assert str(x.type.dims[0]) == "max(0, seq - 2)" and x.shape()[0].value() == [0, 254]


def test_a_symbolic_value_makes_the_same_dim():
    batch, rows = IntVar([1, 64], name="batch"), IntVar([2, 8])
    same = IntVar([1, 64], name="other", symbolic_value=batch.symbolic_value())
    assert same == batch and same.name == "batch"
    assert IntVar([3, 17], symbolic_value=2 * rows.symbolic_value() + 1) == 2 * rows + 1
    fresh = IntVar([1, 5], name="fresh", symbolic_value=sympy.Symbol("fresh_symbol", integer=True))
    assert (fresh.name, fresh.value()) == ("fresh", [1, 5])


def test_the_symbolic_value_of_a_dim_can_be_set():
    rows, columns = IntVar([2, 4], name="rows"), IntVar([4, 8])
    columns._attrs["symbolic_value"] = rows._attrs["symbolic_value"] * 2
    assert columns == rows * 2 and columns.value() == [4, 8]
    columns._attrs["symbolic_value"] = columns._attrs["symbolic_value"]
    with pytest.raises(BuildError, match="is the value of no dim"):
        columns._attrs["symbolic_value"] = sympy.Symbol("of_nothing", integer=True)
    _ = kept = Tensor(shape=[rows, 3], name="x", is_input=True)
    with pytest.raises(BuildError, match='"symbolic_value" of the dim rows cannot be set: inputs have the dim'):
        rows._attrs["symbolic_value"] = columns._attrs["symbolic_value"]
    assert kept.shape()[0] == rows


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: IntVar([]), "smallest and largest"),
        (lambda: IntVar([1.5, 2]), "two integers"),
        (lambda: IntVar([-1, 4]), "at least 0"),
        (lambda: IntVar([1, 1 << 41]), "at most 2\\^40"),
        (lambda: IntVar([1, 4], name="x"), "reserved word"),
        (lambda: IntVar([1, 4], name="my dim"), "cannot name a dim"),
        (lambda: IntVar([1, 4], name='"); system("'), "cannot name a dim"),
        (lambda: IntVar([1, 4], name="_dim7"), "reserved"),
        (lambda: IntVar([1, 4], symbolic_value=sympy.Symbol("x") ** 0.5), "is the value of no dim"),
        (lambda: IntVar([0, 4], name="a") // IntVar([0, 4], name="b"), "cannot be divided"),
        (lambda: IntVar([1, 4], name="a") + 1.5, "a dim is an int"),
        (lambda: IntVar([1, 4], name="a") + IntVar([1, 5], name="a"), "two ranges: 1 to 4 and 1 to 5"),
        (lambda: IntVar([1, 4], name="a").rename("b"), "cannot be renamed"),
    ],
)
def test_bad_dims(make, message):
    with pytest.raises(BuildError, match=message):
        make()
