"""What the test of a client shows about our package: numbers that it compares, or what it asserts of names and counts."""

from __future__ import annotations

import builtins
import linecache
import re
import sys
import traceback
import unittest
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, cast

import numpy as np
import pytest
import torch

from ait_mlir.errors import AitError
from tests.clients.unfair import unfair_error

COMPARISONS = (
    (torch, "allclose"), (torch, "equal"), (torch.Tensor, "allclose"), (torch.Tensor, "equal"),
    (np, "allclose"), (np, "array_equal"),
)  # fmt: skip
"""Functions that compare numbers and return a bool."""
CHECKS = (
    (torch.testing, "assert_close"), (torch.testing, "assert_allclose"),
    (np.testing, "assert_allclose"), (np.testing, "assert_equal"), (np.testing, "assert_array_equal"),
    (np.testing, "assert_almost_equal"), (np.testing, "assert_array_almost_equal"), (np.testing, "assert_array_less"),
)  # fmt: skip
"""Functions that compare numbers and raise."""
OF_NUMBERS = re.compile(r"allclose|isclose|equal\(|\b(?:max_)?(?:err|diff|mismatch)|\btol\b|isnan|isfinite")
"""How the statement of an assert about numbers looks, if it holds no tensor and calls none of these functions."""


REFUSED = re.compile("cudnnGraphNotSupportedError|Graph not supported|unsupported graph")
"""Our error in the text of a test that skips or fails because of it."""
OF_AN_ASSERT = re.compile(r"self\.assert|soft_assert\(|assert |np\.testing\.")
"""How a statement begins that fails while it computes what it asserts, such as the operator of a tensor that has none."""


class WrongNumbers(AssertionError):
    """Numbers differ from those that a test expects."""


@dataclass(frozen=True)
class Verdict:
    """`kind`: pass; stricter (the test ends otherwise only where it asserts names, counts or messages); wrong (numbers);
    refused (an error of ours); error (another exception); unfair; skipped. `compared`: how often numbers were compared.
    """

    kind: str
    reason: str = ""
    compared: int = 0


def has_numbers(values: Sequence[object]) -> bool:
    """Whether one of the values of an assert is a number with a fraction, a tensor or an array, or holds one."""
    return any(
        isinstance(value, (torch.Tensor, np.ndarray, np.inexact, float, complex))
        or (isinstance(value, (list, tuple)) and has_numbers(cast("Sequence[object]", value)))
        for value in values
    )


def difference(found: Any, expected: Any) -> str:
    """How far two tensors or arrays are apart."""
    one, other = (torch.as_tensor(value).detach().double().cpu() for value in (found, expected))
    if one.shape != other.shape:
        return f"shapes {list(one.shape)} and {list(other.shape)}"
    if not one.numel():
        return "no elements"
    at = int((one - other).abs().argmax())
    most = f"{float(one.flatten()[at])} and {float(other.flatten()[at])}"
    return f"{int((one != other).sum())} of {one.numel()} differ, most {most}"


@dataclass(eq=False)  # plugins of pytest are hashed
class Judge:
    """Follows one test, of files in `folder`."""

    folder: str
    compared: int = 0
    unequal: str = ""
    """How far numbers were apart in a comparison since the last assert that was False; "" if none was."""
    deviations: list[str] = field(default_factory=list[str])
    raised: BaseException | None = None
    ran: bool = False

    def install(self) -> None:
        """Wrap the functions that tests compare and assert with; `soft_assert` becomes a builtin."""
        for owner, name in COMPARISONS:
            setattr(owner, name, self._comparison(getattr(owner, name)))
        for owner, name in CHECKS:
            if hasattr(owner, name):
                setattr(owner, name, self._check(getattr(owner, name)))
        for name in dir(unittest.TestCase):
            if re.match(r"assert(?!Raises|Warns|Logs|NoLogs|_)", name):
                setattr(unittest.TestCase, name, self._assertion(getattr(unittest.TestCase, name)))
        builtins.soft_assert = self.soft_assert  # type: ignore[attr-defined]

    def soft_assert(self, value: object, text: str) -> None:
        """An `assert` that is noted where it fails, unless it is about numbers."""
        try:
            if not value:
                self._failed(text, (value,), AssertionError(text))
        finally:
            self.unequal = ""

    def _client(self) -> str | None:
        """The statement of the test that is running, or None if none of its files called."""
        frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        if frame.f_code.co_filename.startswith(self.folder):
            return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        return None

    def _comparison(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def compare(*args: Any, **kwargs: Any) -> Any:
            equal = function(*args, **kwargs)
            if self._client() is not None:
                self.compared += 1
                if not equal:
                    self.unequal = difference(*args[:2])
            return equal

        return compare

    def _check(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def check(*args: Any, **kwargs: Any) -> Any:
            if (statement := self._client()) is None:
                return function(*args, **kwargs)
            self.compared += (numbers := has_numbers((*args[:2], *kwargs.values())))
            try:
                return function(*args, **kwargs)
            except AssertionError as error:
                if numbers:
                    raise WrongNumbers(f"{statement}: {error}") from None
                self._deviates(statement, error)

        return check

    def _assertion(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def check(case: unittest.TestCase, *args: Any, **kwargs: Any) -> Any:
            statement = self._client()
            try:
                return method(case, *args, **kwargs)
            except AitError:  # some are AssertionErrors
                raise
            except AssertionError as error:
                self._failed(statement or "", args[:2], error)
            finally:
                self.unequal = ""
                self.compared += has_numbers(args[:2])

        return check

    def _failed(self, statement: str, values: Sequence[object], error: AssertionError) -> None:
        if self.unequal or has_numbers(values) or OF_NUMBERS.search(statement):
            raise WrongNumbers(f"{statement}: {self.unequal or error}") from None
        self._deviates(statement, error)

    def _deviates(self, statement: str, error: AssertionError) -> None:
        self.deviations.append(f"{statement}: {error}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        made = yield
        self.ran = True
        if call.excinfo is not None and self.raised is None:
            self.raised = call.excinfo.value
        return made

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.raised = ImportError(str(report.longrepr))

    def verdict(self) -> Verdict:
        """What the test shows, after it ended."""
        if self.raised is None and not self.ran:
            return Verdict("error", "the test was not found")
        kind, reason = judged(self.raised, self.deviations, self.folder)
        return Verdict(kind, reason[:2000], self.compared)


def judged(raised: BaseException | None, deviations: Sequence[str], folder: str) -> tuple[str, str]:
    """The kind of a verdict and its reason, by the exception that ended the test, if any, and the asserts that failed."""
    if isinstance(raised, WrongNumbers):
        return "wrong", str(raised)
    if raised is None:
        return ("stricter", deviations[0]) if deviations else ("pass", "")
    frames = [f for f in traceback.extract_tb(raised.__traceback__) if f.filename.startswith(folder)]
    place = f"{frames[-1].line or '?'}: " if frames else ""
    reason = f"{place}{type(raised).__name__}: {raised}"
    ended = isinstance(raised, (pytest.skip.Exception, pytest.fail.Exception, unittest.SkipTest))
    refused = isinstance(raised, AitError) or (ended and REFUSED.search(reason) is not None)
    if isinstance(raised, (pytest.skip.Exception, unittest.SkipTest)) and not refused:
        return "skipped", str(raised)
    if why := unfair_error(reason):
        return "unfair", f"{why}: {reason}"
    if deviations:
        return "stricter", f"{deviations[0]}; then {reason}"
    if refused:
        return "refused", reason
    if isinstance(raised, (AssertionError, pytest.fail.Exception)):
        return ("wrong" if OF_NUMBERS.search(reason) else "stricter"), reason
    return ("stricter" if OF_AN_ASSERT.match(place) else "error"), reason
