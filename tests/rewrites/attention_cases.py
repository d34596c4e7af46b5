"""Graphs for every way through the attention pattern: one that matches, and for each precondition one that breaks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

RANKS = (4, 3)
# Where the scale is applied, by which op, and which of its operands is the constant.
SCALES = ("no_scale", "scores_mul_1", "scores_mul_0", "scores_div_1", "query_mul_1", "query_mul_0", "query_div_1")
MASKS = ("no_mask", "mask_1", "mask_0")
VARIANTS = [(rank, scale, mask) for rank in RANKS for scale in SCALES for mask in MASKS]


@dataclass(frozen=True)
class Attention:
    """A graph of bmm, scale, mask, softmax, bmm as text. Shapes are dims without the element type."""

    rank: int
    scale: str
    mask: str
    q: str = "b x 3 x s x 8"
    k: str = "b x 3 x l x 8"
    v: str = "b x 3 x l x 6"
    scores: str = "b x 3 x s x l"
    masked: str = ""
    result: str = "b x 3 x s x 6"
    constant: str = "0.25"
    constant_shape: str = ""
    scaled_query: str = ""
    scaled_scores: str = ""
    mask_shape: str = "b x 1 x 1 x l"
    softmax_dim: int = -1
    first_layout: str = "rcr"
    second_layout: str = "rrr"
    first_epilogue: bool = False
    second_epilogue: bool = False
    shared: str = ""

    def text(self) -> str:
        """The graph. `shared` names a value that is an output, too."""
        has_mask = self.mask != "no_mask"
        masked = self.masked or self.scaled_scores or self.scores
        inputs = [("q", self.q), ("k", self.k), ("v", self.v)] + [("m", self.mask_shape)] * has_mask
        arguments = ", ".join(f"%{name}: {tensor(shape)}" for name, shape in inputs)
        lines = [f"%c = ait.constant {self.constant} : {tensor(self.constant_shape)}"]
        types: dict[str, str] = {}

        def add(name: str, body: str, shape: str) -> str:
            lines.append(f"%{name} = {body} : {tensor(shape)}")
            types[name] = tensor(shape)
            return name

        query = "q"
        if self.scale.startswith("query"):
            query = add("qs", self.scaled("q"), self.scaled_query or self.q)
        last = add("s0", f"ait.bmm {self.first_layout} %{query}, %k{RELU * self.first_epilogue}", self.scores)
        if self.scale.startswith("scores"):
            last = add("s1", self.scaled(last), self.scaled_scores or self.scores)
        if has_mask:
            last = add("s2", "ait.add " + (f"%{last}, %m" if self.mask == "mask_1" else f"%m, %{last}"), masked)
        last = add("p", f"ait.softmax %{last} dim {self.softmax_dim % (masked.count(' x ') + 1)}", masked)
        add("y", f"ait.bmm {self.second_layout} %{last}, %v{RELU * self.second_epilogue}", self.result)
        outputs = ["y"] + ([self.shared] if self.shared else [])
        lines += [f'ait.output "{name}" %{name} : {types[name]}' for name in outputs]
        return f"ait.graph @f({arguments}) dims {{{DIMS}}} {{\n  " + "\n  ".join(lines) + "\n}\n"

    def scaled(self, name: str) -> str:
        _, op, position = self.scale.split("_")
        return f"ait.{op} " + (f"%{name}, %c" if position == "1" else f"%c, %{name}")


DIMS = "b = 1 to 4, s = 1 to 8, l = 1 to 8"
RELU = " epilogue() {\n  ^bb0(%acc: f32):\n    %r = ait.relu %acc : f32\n    ait.yield %r : f32\n  }"


def tensor(shape: str) -> str:
    return f"!ait.tensor<{shape} x f32>" if shape else "!ait.tensor<f32>"


def matching(rank: int, scale: str, mask: str) -> Attention:
    """The graph that the variant is for."""
    case = Attention(rank, scale, mask)
    if rank == 3:
        drop = {name: getattr(case, name).replace("b x 3 x ", "b x ") for name in ("q", "k", "v", "scores", "result")}
        case = replace(case, **drop, mask_shape="b x 1 x l")
    return case


def breaking(case: Attention) -> Iterator[tuple[str, Attention]]:
    """Graphs that differ from a matching one in one precondition."""
    scaled, masked = case.scale != "no_scale", case.mask != "no_mask"
    batch = "b x 3 x " if case.rank == 4 else "b x "
    # with one query, or one key, something else can enlarge the scores
    one_query = replace(case, q=f"{batch}1 x 8", scores=f"{batch}1 x l", result=f"{batch}5 x 6", masked=f"{batch}5 x l")
    yield "softmax_over_rows", replace(case, softmax_dim=-2)
    yield "softmax_is_shared", replace(case, shared="p")
    yield "first_layout", replace(case, first_layout="rrr", k=f"{batch}8 x l")
    yield "second_layout", replace(case, second_layout="rcr", v=f"{batch}6 x l")
    yield "first_has_epilogue", replace(case, first_epilogue=True)
    yield "second_has_epilogue", replace(case, second_epilogue=True)
    yield "products_are_shared", replace(case, shared="s0")
    yield "batch_of_k", replace(case, k="l x 8")
    yield "batch_of_v", replace(case, v="l x 6")
    yield "large_queries", replace(case, q=f"{batch}s x 512", k=f"{batch}l x 512")
    yield "large_values", replace(case, v=f"{batch}l x 512", result=f"{batch}s x 512")
    if scaled:
        where = "scaled_query" if case.scale.startswith("query") else "scaled_scores"
        yield "zero", replace(case, constant="0.0")
        yield (
            "different_constants",
            replace(
                case,
                constant="[" + ", ".join(["0.25"] * 7 + ["0.5"]) + "]",
                k=f"{batch}8 x 8",
                v=f"{batch}8 x 6",
                scores=f"{batch}s x 8",
                constant_shape="8",
                mask_shape=f"{'b x 1 x 1' if case.rank == 4 else 'b x 1'} x 8",
            ),
        )
        enlarged = {"scaled_query": f"{batch}5 x 8", "scaled_scores": f"{batch}5 x l"}[where]
        scores = f"{batch}5 x l" if where == "scaled_query" else f"{batch}1 x l"
        yield "constant_enlarges", replace(one_query, constant_shape="5 x 1", scores=scores, **{where: enlarged})
    if case.scale.startswith("scores"):
        yield "scaled_scores_are_shared", replace(case, shared="s1")
    if masked:
        yield "masked_scores_are_shared", replace(case, shared="s2")
        yield "mask_enlarges", replace(one_query, mask_shape="5 x l")
    # 2 and 5 dims for what is for 4, and for 3
    if case.rank == 4:
        more = {name: f"2 x {getattr(case, name)}" for name in ("q", "k", "v", "scores", "result")}
    else:
        more = {name: getattr(case, name).removeprefix("b x ") for name in ("q", "k", "v", "scores", "result")}
        more |= {"mask_shape": "1 x l"}
    yield "rank", replace(case, **more)
