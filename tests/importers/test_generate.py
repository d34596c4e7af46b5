"""`model.generate` of transformers with `torch.compile(backend="ait")`: the tokens are those of PyTorch."""

from __future__ import annotations

import logging
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from ait_mlir.errors import InputError  # noqa: E402
from ait_mlir.importers.torch.dynamo import register  # noqa: E402

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
        ("llama", "static", 1, "greedy"),
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
