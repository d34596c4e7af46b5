"""`model.generate` of transformers with `torch.compile(backend="ait")`: the tokens are those of PyTorch."""

from __future__ import annotations

import logging
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from ait_mlir.errors import InputError  # noqa: E402
from ait_mlir.importers.torch.dynamo import MODES, graph_device, is_moved, register  # noqa: E402

STEPS = 64
FULL = pytest.mark.full


@pytest.fixture(autouse=True)
def backend():
    register()
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def llama(**options: Any) -> Any:
    config = transformers.LlamaConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=96,
        max_position_embeddings=128,
        eos_token_id=None,
        pad_token_id=0,
        **options,
    )
    return transformers.LlamaForCausalLM(config).eval()


def gpt2() -> Any:
    config = transformers.GPT2Config(
        n_embd=32,
        n_layer=2,
        n_head=4,
        vocab_size=96,
        n_positions=128,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
    )
    return transformers.GPT2LMHeadModel(config).eval()


MODELS = {"llama": llama, "gpt2": gpt2}


GREEDY: dict[str, Any] = {"do_sample": False}
STRATEGIES: dict[str, dict[str, Any]] = {
    "greedy": GREEDY,
    "beams": GREEDY | {"num_beams": 3},
    "sampling": {"do_sample": True, "top_k": 20, "top_p": 0.9, "temperature": 0.8, "repetition_penalty": 1.2},
}


@pytest.mark.parametrize(
    ("name", "cache", "batch", "strategy"),
    [
        ("llama", "dynamic", 2, "greedy"),
        pytest.param("llama", "static", 1, "greedy", marks=FULL),  # `test_the_steps_that_transformers_compiles` has such a cache
        pytest.param("gpt2", "static", 2, "greedy", marks=FULL),
        pytest.param("gpt2", "dynamic", 1, "greedy", marks=FULL),
        pytest.param("llama", "static", 3, "greedy", marks=FULL),
        pytest.param("llama", "dynamic", 1, "greedy", marks=FULL),
        pytest.param("llama", "dynamic", 2, "beams", marks=FULL),
        pytest.param("llama", "static", 1, "beams", marks=FULL),
        pytest.param("llama", "dynamic", 2, "sampling", marks=FULL),
        pytest.param("gpt2", "static", 1, "sampling", marks=FULL),
    ],
)
def test_the_tokens_are_those_of_pytorch(
    name: str, cache: str, batch: int, strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Two prompts, so that a compiled graph meets a second cache; the rows of a batch are padded on the left."""
    caplog.set_level(logging.INFO, logger="ait_mlir.torch_compile")
    torch.manual_seed(batch)
    model = MODELS[name]()
    eager = model.forward
    compiled = torch.compile(eager, backend="ait")
    for length in (7, 9):
        prompt = torch.randint(1, 96, (batch, length))
        mask = torch.ones_like(prompt)
        if batch > 1:
            mask[0, :3] = 0
        options = {"max_length": STEPS + 9, "attention_mask": mask, **STRATEGIES[strategy]}
        options |= {"cache_implementation": "static"} if cache == "static" else {}
        tokens = []
        for forward in (eager, compiled):
            model.forward = forward
            torch.manual_seed(0)
            tokens.append(model.generate(prompt, **options))
        assert tokens[1].shape == (batch, STEPS + 9)
        assert torch.equal(*tokens)
    told = [r.getMessage() for r in caplog.records]
    assert told and all("is compiled" in t for t in told), "\n".join(told)


def test_the_steps_that_transformers_compiles(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ait_mlir.torch_compile")
    config = transformers.CompileConfig(backend="ait")
    config._compile_all_devices = True
    model, prompt = llama(), torch.randint(1, 96, (1, 7))
    options = {"max_length": 16, "do_sample": False, "attention_mask": torch.ones_like(prompt)}
    options["cache_implementation"] = "static"
    expected = model.generate(prompt, **options)
    assert torch.equal(model.generate(prompt, **options, compile_config=config), expected)
    assert caplog.records and all("is compiled" in r.getMessage() for r in caplog.records)


@pytest.mark.parametrize("mode", [*MODES, "max-speed"])
def test_the_modes_of_torch_compile(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="ait_mlir.torch_compile")
    x = torch.randn(3, 4)
    fast = torch.compile(torch.nn.Linear(4, 4).requires_grad_(False), backend="ait", mode=mode)
    if mode in MODES:
        fast(x)
        assert ["is compiled" in r.getMessage() for r in caplog.records] == [True]
    else:
        with pytest.raises(Exception, match=f"unknown mode '{mode}' of the backend 'ait'; the modes are default"):
            fast(x)


class Scaled:
    """What a graph does with a single number on the CPU, on the device `meta`."""

    @staticmethod
    def copied(x: Any, s: Any) -> Any:
        return x * s.to("meta")

    @staticmethod
    def copied_and_changed(x: Any, s: Any) -> Any:
        return x * s.to("meta").add_(1)

    @staticmethod
    def multiplied(x: Any, s: Any) -> Any:
        return x * s

    @staticmethod
    def changed(x: Any, s: Any) -> Any:
        return x * s.add_(1)

    @staticmethod
    def computed(x: Any, s: Any) -> Any:
        return x * (s + 1)

    @staticmethod
    def returned(x: Any, s: Any) -> Any:
        return x * s, s


@pytest.mark.parametrize(
    ("case", "moved"),
    [
        ("copied", True),
        ("copied_and_changed", True),
        ("multiplied", True),
        ("changed", False),
        ("computed", False),
        ("returned", True),  # not by the graph
    ],
)
def test_which_numbers_on_the_cpu_are_moved_to_the_card(case: str, moved: bool) -> None:
    seen: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        holders = [n for n in graph.graph.nodes if n.op == "placeholder"]
        device = graph_device(inputs)
        assert device.type == "meta"
        seen.extend(is_moved(n, x, device) for n, x in zip(holders, inputs, strict=True) if x.device.type == "cpu")
        return graph.forward

    torch.compile(getattr(Scaled, case), backend=backend)(torch.empty(4, device="meta"), torch.tensor(2.0))
    assert seen == [moved]


def test_dims_that_an_operation_requires_to_be_equal_are_one() -> None:
    import ait_mlir

    class Cached(torch.nn.Module):
        """A step over a cache, the pieces of which PyTorch takes for independent."""

        def forward(self, q: Any, k: Any, v: Any) -> Any:
            k, v = (torch.cat([x, q], 2) for x in (k, v))
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    q, k, v = torch.randn(1, 2, 1, 8), torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
    dims = {"q": None, "k": {2: torch.export.Dim("past", max=64)}, "v": {2: torch.export.Dim("other", min=2, max=99)}}
    compiled = ait_mlir.compile(Cached().eval(), (q, k, v), dynamic_shapes=dims)
    assert compiled.model.dims == {"past": (2, 64)}
    for length in (2, 5, 64):
        given = q, torch.randn(1, 2, length, 8), torch.randn(1, 2, length, 8)
        torch.testing.assert_close(compiled(*given), Cached()(*given))
    with pytest.raises(InputError, match="past"):
        compiled(q, torch.randn(1, 2, 5, 8), torch.randn(1, 2, 6, 8))
