"""Models imported from PyTorch, on the card in half precision, and `torch.compile` inside of CUDA graphs."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import ait_mlir
from ait_mlir.importers.torch.dynamo import register
from benchmarks import measure
from tests.importers import blind
from tests.importers.models import CASES, prepared, tensors
from tests.importers.spelled import SPELLED, Spelled, operations

pytestmark = pytest.mark.gpu

F16, BF16 = torch.float16, torch.bfloat16
MODELS = (
    ("BertModel", F16),
    ("CLIPTextModel", F16),
    ("GPT2Model", F16),
    ("LlamaModel", F16),
    ("LlamaModel", BF16),
    ("Qwen2Model", F16),
    ("Qwen2Model", BF16),
    ("T5EncoderModel", BF16),
    ("ViTModel", F16),
    ("timm vit", F16),
    ("timm vit", torch.float32),
)
SIZES = ((1, 5), (8, 33))


@pytest.mark.parametrize("dtype", [torch.float32, F16, BF16], ids=str)
@pytest.mark.parametrize(("group", "name"), blind.NAMES)
def test_rows_of_attention_that_see_no_column(group, name, dtype):
    model, inputs = blind.Function(blind.GROUPS[group][name]).eval(), blind.inputs_of(dtype, "cuda")
    ours = ait_mlir.compile(model, inputs, target="cuda")(*inputs)
    assert ours.dtype == dtype
    if dtype == torch.float32:
        exact = blind.exact_of(model, inputs)
        torch.testing.assert_close(ours.cpu().double(), exact, rtol=1e-2, atol=1e-2, equal_nan=True)
    else:
        result = blind.accuracy_of(ours, model, inputs)
        print(f"{group} {name} {dtype}: {result}")
        assert result.passed, result


def test_padding_in_front_does_not_spread_through_the_layers():
    model, inputs = blind.Encoder().eval().cuda(), blind.of_encoder("cuda")
    want = copy.deepcopy(model).cpu()(*(t.cpu() for t in inputs)).cuda()
    torch.testing.assert_close(
        ait_mlir.compile(model, tuple(inputs), target="cuda")(*inputs), want, rtol=1e-2, atol=1e-2
    )


COMPLEX = {
    "stft": lambda x: torch.view_as_real(
        torch.stft(x, 8, return_complex=True, window=torch.hann_window(8, dtype=x.dtype, device=x.device))
    ),
    "rfft": lambda x: torch.fft.rfft(x).abs(),
    "products": lambda x: torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) ** 2),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_in_half_precision(name):
    model, x = blind.Function(COMPLEX[name]).eval(), torch.randn(2, 64, device="cuda", dtype=F16)
    want = model(x.float()).to(F16)
    torch.testing.assert_close(ait_mlir.compile(model, (x,), target="cuda")(x), want, rtol=1e-2, atol=2e-2)


class Recurrent(nn.Module):
    """A step of an LSTM and of a GRU, which PyTorch fuses on a card, and a whole transformer."""

    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTMCell(16, 8), nn.GRUCell(16, 8)
        self.whole = nn.Transformer(16, 2, 1, 1, 32, batch_first=True)

    def forward(self, x, h):
        return *self.lstm(x[:, 0], (h, h * 2)), self.gru(x[:, 1], h), self.whole(x, x[:, :2])


@pytest.mark.parametrize("dtype", [torch.float32, F16], ids=str)
def test_what_pytorch_fuses_on_a_card(dtype):
    torch.manual_seed(0)
    model = Recurrent().eval().cuda().to(dtype)
    given = torch.randn(2, 5, 16, device="cuda", dtype=dtype), torch.randn(2, 8, device="cuda", dtype=dtype)
    with torch.no_grad():
        dynamic = {"x": {0: torch.export.Dim("batch", min=1, max=8)}, "h": {0: torch.export.Dim("batch", min=1, max=8)}}
        compiled = ait_mlir.compile(model, given, dynamic_shapes=dynamic, target="cuda")
        for ours, want in zip(compiled(*given), model(*given), strict=True):
            torch.testing.assert_close(ours, want, rtol=2e-2, atol=2e-2)


def on_card(tree, dtype):
    return {n: t.cuda().to(dtype) if t.is_floating_point() else t.cuda() for n, t in tree.items()}


@pytest.mark.parametrize(("name", "dtype"), MODELS, ids=lambda v: str(v).removeprefix("torch."))
def test_a_model_agrees_with_pytorch(name, dtype):
    case, model = CASES[name], prepared(name).to(dtype).cuda()
    compiled = ait_mlir.compile(
        model, (), on_card(case.arguments(2, 7), dtype), dynamic_shapes=case.dynamic, target="cuda"
    )
    exact = copy.deepcopy(model).double()
    sides: list[list[list[torch.Tensor]]] = []
    with torch.no_grad():
        for batch, seq in SIZES:
            for _ in range(max(1, 64 // (batch * seq))):  # enough numbers for a ratio of errors to mean something
                given = on_card(case.arguments(batch, seq), dtype)
                ours, eager = compiled(**given), model(**given)
                truth = exact(**on_card(given, torch.float64))
                torch.cuda.synchronize()
                sides.append([tensors(ours), tensors(eager), tensors(truth)])
    for i in range(len(sides[0][0])):
        result = measure.accuracy(*(torch.cat([s[k][i].flatten() for s in sides]) for k in range(3)))
        print(f"{name} {dtype}, result {i}: {result}")
        assert result.passed, (i, result)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.encoder(x)


@pytest.fixture
def encoder(caplog):
    if not torch.cuda.is_available():
        pytest.skip("compiles for tensors of a card")
    caplog.set_level("INFO", logger="ait_mlir.torch_compile")
    register()
    torch._dynamo.reset()
    torch.backends.mha.set_fastpath_enabled(False)
    torch.manual_seed(0)
    model = Net().cuda().eval()
    with torch.no_grad():
        yield model, torch.compile(model, backend="ait"), caplog
    torch._dynamo.reset()


def close(ours, model, x):
    torch.cuda.synchronize()
    torch.testing.assert_close(ours, model(x), rtol=2e-3, atol=2e-3)


def test_torch_compile_runs_on_the_card(encoder):
    model, fast, log = encoder
    for batch in (2, 3, 5):
        x = torch.randn(batch, 20, 64, device="cuda")
        close(fast(x), model, x)
    assert all("is compiled" in r.message for r in log.records)


def test_a_compiled_call_can_be_captured_and_replayed(encoder):
    """The graph outlives larger runs beside it, which need a larger arena."""
    model, fast, log = encoder
    x = torch.randn(4, 16, 64, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            fast(x)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = fast(x)
    for _ in range(2):
        x.copy_(torch.randn_like(x))
        y.fill_(float("nan"))
        graph.replay()
        close(y, model, x)
        large = torch.randn(16, 100, 64, device="cuda")
        close(fast(large), model, large)
    assert not [r.message for r in log.records if "runs in PyTorch" in r.message]


def test_a_capture_that_would_have_to_make_room_is_refused_or_left_to_pytorch(encoder):
    model, fast, log = encoder
    for batch in (2, 3):  # one graph for any batch
        fast(torch.randn(batch, 16, 64, device="cuda"))
    x = torch.randn(9, 16, 64, device="cuda")
    model(x)  # PyTorch's own libraries are set up
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = fast(x)
    graph.replay()
    close(y, model, x)
    assert any("run once at this size before the capture" in r.message for r in log.records)


def test_weights_that_change_are_taken_by_the_next_call(encoder):
    model, fast, _ = encoder
    x = torch.randn(2, 16, 64, device="cuda")
    close(fast(x), model, x)
    for parameter in model.parameters():
        parameter.mul_(1.5)
    close(fast(x), model, x)


@pytest.mark.parametrize("dtype", [F16, BF16, torch.float32], ids=str)
def test_attention_spelled_out_with_infinite_masks(dtype):
    torch.manual_seed(0)
    model = Spelled().to(dtype).cuda().eval()
    batch, seq = torch.export.Dim("batch", max=8), torch.export.Dim("seq", max=600)
    example = (torch.randn(2, 9, 256, dtype=dtype).cuda(), torch.ones(2, 9, dtype=torch.bool).cuda())
    shapes = ({0: batch, 1: seq}, {0: batch, 1: seq})
    compiled = ait_mlir.compile(model, example, dynamic_shapes=shapes, target="cuda")
    assert operations(compiled.ir("fused")) == SPELLED
    exact = copy.deepcopy(model).double()
    with torch.no_grad():
        for b, s in ((1, 7), (3, 130), (2, 600)):
            x = torch.randn(b, s, 256, dtype=dtype).cuda()
            seen = torch.ones(b, s, dtype=torch.bool).cuda()
            seen[0, : s - 3] = False  # whole blocks of columns are hidden before the first that is seen
            ours, eager, truth = compiled(x, seen), model(x, seen), exact(x.double(), seen)
            torch.cuda.synchronize()
            result = measure.accuracy(ours, eager, truth)
            print(f"spelled {dtype} {b} x {s}: {result}")
            assert result.passed, result


@pytest.mark.parametrize("way", ["forward", "steps"])
def test_generate_with_a_static_cache_runs_compiled(way, caplog):
    """The first step makes the cache of a length on the CPU; later steps transformers compiles, or we with all else."""
    transformers = pytest.importorskip("transformers")
    if not torch.cuda.is_available():
        pytest.skip("compiles for tensors of a card")
    caplog.set_level("INFO", logger="ait_mlir.torch_compile")
    register()
    torch._dynamo.reset()
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=96,
        eos_token_id=None,
        pad_token_id=0,
    )
    model = transformers.LlamaForCausalLM(config).cuda().eval()
    prompt = torch.randint(1, 96, (2, 7), device="cuda")
    options = {"max_length": 24, "do_sample": False, "attention_mask": torch.ones_like(prompt)}
    options["cache_implementation"] = "static"
    expected = model.generate(prompt, **options, disable_compile=True)
    if way == "forward":
        model.forward = torch.compile(model.forward, backend="ait")
        options["disable_compile"] = True
    else:
        options["compile_config"] = transformers.CompileConfig(backend="ait")
    assert torch.equal(model.generate(prompt, **options), expected)
    torch._dynamo.reset()
    told = [r.message for r in caplog.records]
    assert told and all("is compiled" in t for t in told), told


class Gated(nn.Module):
    """A norm, and a gated MLP behind it."""

    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(512, eps=1e-5, dtype=F16)
        self.gate, self.up = (nn.Linear(512, 768, bias=False, dtype=F16) for _ in range(2))
        self.down = nn.Linear(768, 512, bias=False, dtype=F16)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


@pytest.mark.parametrize("recipe", ["w8a8", "fp8", "fp8-static", "fp8-block"])
def test_quantised_products(recipe):
    """Values of f16 between launches differ from those of the CPU by a rounding, which moves some 8-bit floats."""
    torch.manual_seed(0)
    x = torch.randn(3, 70, 512, dtype=F16)
    made = ait_mlir.quantize(Gated().eval(), [(x,)], recipe)
    want, found = made.compile("cpu")(x).double(), made.compile("cuda")(x.cuda()).cpu().double()
    assert (found - want).norm() < 0.02 * (want - x.double()).norm()


class Attending(nn.Module):
    """Attention with heads of 128 columns and an MLP with a GELU, with norms that the residual sums also read."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (nn.LayerNorm(256, dtype=F16) for _ in range(2))
        self.q, self.k, self.v, self.o = (nn.Linear(256, 256, dtype=F16) for _ in range(4))
        self.up, self.down = nn.Linear(256, 512, dtype=F16), nn.Linear(512, 256, dtype=F16)

    def forward(self, x):
        batch, rows, _ = x.shape
        x = self.first(x)
        q, k, v = (layer(x).view(batch, rows, 2, 128).transpose(1, 2) for layer in (self.q, self.k, self.v))
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        x = self.second(x + self.o(y.transpose(1, 2).reshape(batch, rows, 256)))
        return x + self.down(nn.functional.gelu(self.up(x)))


@pytest.mark.parametrize("recipe", ["w8a8", "fp8", "fp8-static", "fp8-block"])
def test_quantised_attention(recipe):
    """Results that a card stores in 8 bits are no further from float64 than those of the CPU."""
    torch.manual_seed(0)
    x = torch.randn(3, 70, 256, dtype=F16)
    model = Attending().eval()
    made = ait_mlir.quantize(model, [(x,)], recipe)
    cpu, card = made.compile("cpu")(x).double(), made.compile("cuda")(x.cuda()).cpu().double()
    exact = model.double()(x.double()).detach()
    assert (card - exact).norm() < 1.1 * (cpu - exact).norm()
