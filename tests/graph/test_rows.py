"""Norms, reductions, softmax, and operations that move elements."""

from __future__ import annotations

import pytest
import torch

import ait_mlir.graph as cudnn
from tests import tiers
from tests.graph.cases import Cases

F = torch.nn.functional
DTYPES = {"half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32}
LOOSE = {torch.float16: 5e-3, torch.bfloat16: 4e-2, torch.float32: 2e-5}
INFERENCE, TRAINING = cudnn.norm_forward_phase.INFERENCE, cudnn.norm_forward_phase.TRAINING
EPS = 1e-3


@pytest.fixture(scope="module", params=tiers.params(DTYPES, ["half"]))
def norms(request: pytest.FixtureRequest, place: str) -> Cases:
    torch.manual_seed(4)
    dtype = DTYPES[request.param]
    c = Cases(place)
    g = c.graph

    def like(shape: torch.Size, of: torch.dtype = dtype) -> torch.Tensor:
        return torch.empty(shape, dtype=of)

    eps = c.input(torch.full((1, 1, 1, 1), EPS), is_pass_by_value=True, name="eps")
    if c.is_evaluated:
        eps.value = EPS
    x, scale, bias = (
        t.to(dtype) for t in (torch.randn(6, 48, 1, 1), torch.rand(1, 48, 1, 1), torch.randn(1, 48, 1, 1))
    )
    tx, ts, tb = c.input(x), c.input(scale), c.input(bias)
    rows = x.double().reshape(6, 48)
    gain, shift = scale.double().reshape(48), bias.double().reshape(48)
    layer = F.layer_norm(rows, (48,), gain, shift, EPS).reshape(x.shape)
    rms = F.rms_norm(rows, (48,), gain, EPS).reshape(x.shape)
    mean = rows.mean(1).reshape(6, 1, 1, 1)
    inverse = (rows.var(1, unbiased=False) + EPS).rsqrt().reshape(6, 1, 1, 1)

    y, m, v = g.layernorm(norm_forward_phase=TRAINING, input=tx, scale=ts, bias=tb, epsilon=eps, name="ln")
    c.output("layernorm", y, layer, like(x.shape), LOOSE[dtype])
    c.output("layernorm mean", m, mean, like(mean.shape, torch.float32), 1e-4)
    c.output("layernorm inv_var", v, inverse, like(mean.shape, torch.float32), 1e-3)
    y, none, also = g.layernorm(norm_forward_phase=INFERENCE, input=tx, scale=ts, bias=tb, epsilon=eps)
    assert none is None
    assert also is None
    c.output("layernorm relu", g.relu(y), layer.relu(), like(x.shape), LOOSE[dtype])
    y, v = g.rmsnorm(norm_forward_phase=TRAINING, input=tx, scale=ts, epsilon=eps)
    c.output("rmsnorm", y, rms, like(x.shape), LOOSE[dtype])
    square = (rows.pow(2).mean(1) + EPS).rsqrt().reshape(6, 1, 1, 1)
    c.output("rmsnorm inv_var", v, square, like(square.shape, torch.float32), 1e-3)
    y, _ = g.rmsnorm(norm_forward_phase=INFERENCE, input=tx, scale=ts, bias=tb, epsilon=eps)
    expected = rms + bias.double()
    c.output("rmsnorm bias", y, expected, like(x.shape), LOOSE[dtype])
    y, _ = g.rmsnorm(norm_forward_phase=INFERENCE, input=g.add(tx, tx), scale=ts, epsilon=eps)
    doubled = F.rms_norm(2 * rows, (48,), gain, EPS).reshape(x.shape)
    c.output("rmsnorm of a sum", g.swish(y), F.silu(doubled), like(x.shape), LOOSE[dtype])

    sequence = torch.randn(2, 5, 32).to(dtype)
    wide_scale = torch.rand(1, 1, 32)
    t_seq = c.input(sequence)
    constant = g.tensor_scalar(1e-5, cudnn.scalar_type.COMPILE_TIME_CONST)
    y, _, _ = g.layernorm(norm_forward_phase=INFERENCE, input=t_seq, scale=c.input(wide_scale), epsilon=constant)
    expected = F.layer_norm(sequence.double(), (32,), wide_scale.double().reshape(32), None, 1e-5)
    c.output("layernorm, other types", y, expected, like(sequence.shape), LOOSE[dtype])
    each_scale, each_bias = torch.rand(2, 1, 32).to(dtype), torch.randn(2, 1, 32).to(dtype)
    y, m, v = g.adalayernorm(
        norm_forward_phase=TRAINING, input=t_seq, scale=c.input(each_scale), bias=c.input(each_bias), epsilon=eps
    )
    expected = F.layer_norm(sequence.double(), (32,), eps=EPS) * each_scale.double() + each_bias.double()
    c.output("adalayernorm", y, expected, like(sequence.shape), LOOSE[dtype])
    c.output(
        "adalayernorm mean", m, sequence.double().mean(2, keepdim=True), like(m_shape(sequence), torch.float32), 1e-4
    )

    image = torch.randn(2, 6, 5, 4).to(dtype)
    last = torch.randn(2, 6, 5, 4).to(dtype).to(memory_format=torch.channels_last)
    channel_scale, channel_bias = torch.rand(1, 6, 1, 1).to(dtype), torch.randn(1, 6, 1, 1).to(dtype)
    tcs, tcb = c.input(channel_scale), c.input(channel_bias)
    for name, data in (("instancenorm", image), ("instancenorm channels-last", last)):
        y, _, _ = g.instancenorm(norm_forward_phase=INFERENCE, input=c.input(data), scale=tcs, bias=tcb, epsilon=eps)
        wide = data.double()
        expected = F.instance_norm(
            wide, weight=channel_scale.double().reshape(6), bias=channel_bias.double().reshape(6), eps=EPS
        )
        c.output(name, y, expected, torch.empty_like(data), LOOSE[dtype])
    running_mean, running = torch.randn(1, 6, 1, 1), torch.rand(1, 6, 1, 1) + 0.5
    y = g.batchnorm_inference(c.input(last), c.input(running_mean), c.input(running), tcs, tcb)
    expected = (
        last.double() - running_mean.double()
    ) * running.double() * channel_scale.double() + channel_bias.double()
    c.output("batchnorm_inference", y, expected, torch.empty_like(last), LOOSE[dtype])
    momentum = c.input(torch.full((1, 1, 1, 1), 0.1), is_pass_by_value=True, name="momentum")
    trained = (last.double(), running_mean.double().reshape(6), running.double().reshape(6))
    expected = F.batch_norm(
        *(x.clone() for x in trained),
        channel_scale.double().reshape(6),
        channel_bias.double().reshape(6),
        True,
        0.1,
        EPS,
    )
    over = (0, 2, 3)
    batch_mean, batch_var = trained[0].mean(over), trained[0].var(over, unbiased=False)
    results = g.batchnorm(
        input=c.input(last),
        scale=tcs,
        bias=tcb,
        in_running_mean=c.input(running_mean),
        in_running_var=c.input(running),
        epsilon=eps,
        momentum=momentum,
        name="bn",
    )
    assert [t.get_name() for t in results[3:]] == ["bn::NEXT_RUNNING_MEAN", "bn::NEXT_RUNNING_VAR"]
    c.output("batchnorm", results[0], expected, torch.empty_like(last), LOOSE[dtype])
    for name, t, wanted in (
        ("mean", results[1], batch_mean),
        ("inverse", results[2], (batch_var + EPS).rsqrt()),
        ("next mean", results[3], trained[1] * 0.9 + batch_mean * 0.1),
        ("next var", results[4], trained[2] * 0.9 + trained[0].var(over) * 0.1),
    ):
        c.output(f"batchnorm {name}", t, wanted.reshape(1, 6, 1, 1), torch.empty(1, 6, 1, 1), 1e-3)
    total, squares = g.genstats(c.input(image))
    wide = image.double()
    c.output(
        "genstats sum", total, wide.sum(over).reshape(1, 6, 1, 1), like(torch.Size((1, 6, 1, 1)), torch.float32), 1e-3
    )
    c.output(
        "genstats squares",
        squares,
        wide.pow(2).sum(over).reshape(1, 6, 1, 1),
        like(torch.Size((1, 6, 1, 1)), torch.float32),
        1e-3,
    )
    return c.run()


def m_shape(x: torch.Tensor) -> torch.Size:
    return torch.Size((*x.shape[:-1], 1))


@pytest.mark.parametrize(
    "name",
    [
        *("layernorm", "layernorm mean", "layernorm inv_var", "layernorm relu", "rmsnorm", "rmsnorm inv_var"),
        *("rmsnorm bias", "rmsnorm of a sum", "layernorm, other types", "adalayernorm", "adalayernorm mean"),
        *("batchnorm", "batchnorm mean", "batchnorm inverse", "batchnorm next mean", "batchnorm next var"),
        *("instancenorm", "instancenorm channels-last", "batchnorm_inference", "genstats sum", "genstats squares"),
    ],
)
def test_norm(norms: Cases, name: str):
    norms.check(name)


MODES = cudnn.reduction_mode
REDUCTIONS = {
    "ADD": lambda x, d: x.sum(d, keepdim=True),
    "AMAX": lambda x, d: x.abs().amax(d, keepdim=True),
    "AVG": lambda x, d: x.mean(d, keepdim=True),
    "MAX": lambda x, d: x.amax(d, keepdim=True),
    "MIN": lambda x, d: x.amin(d, keepdim=True),
    "MUL": lambda x, d: x.prod(d[0], keepdim=True),
    "MUL_NO_ZEROS": lambda x, d: torch.where(x == 0, 1.0, x).prod(d[0], keepdim=True),
    "NORM1": lambda x, d: x.abs().sum(d, keepdim=True),
    "NORM2": lambda x, d: x.pow(2).sum(d, keepdim=True).sqrt(),
}


@pytest.fixture(scope="module")
def moves(place: str) -> Cases:
    torch.manual_seed(5)
    c = Cases(place, io_data_type=cudnn.data_type.FLOAT)
    g = c.graph
    x = torch.randn(4, 6, 5)
    x[0, :, 0] = 0
    tx = c.input(x)
    for name, f in REDUCTIONS.items():
        y = g.reduction(tx, mode=MODES[name], name=name)
        c.output(name, y, f(x.double(), [1]).float(), tolerance=1e-5)
    y = g.reduction(tx, mode=MODES.ADD)
    c.output("ADD all", y, x.sum().reshape(1, 1, 1), tolerance=1e-4)
    y, stats = g.softmax(tx, axis=1, use_stats=True)
    c.output("softmax", y, x.softmax(1))
    c.output("softmax stats", stats, x.logsumexp(1, keepdim=True))
    c.output("transpose", g.transpose(tx, permutation=[2, 0, 1]), x.permute(2, 0, 1).contiguous())
    c.output("slice", g.slice(tx, [slice(1, 3), slice(None), slice(0, 4)]), x[1:3, :, :4].contiguous())
    c.output("slice with steps", g.slice(tx, [slice(0, 4, 2), slice(1, 6, 3), slice(None)]), x[::2, 1::3].contiguous())
    c.output("concatenate", g.concatenate([tx, tx, c.input(x + 1)], axis=1), torch.cat([x, x, x + 1], 1))
    view = g.reshape(tx)
    view.set_dim([24, 5])
    c.output("reshape", view, x.reshape(24, 5))
    last = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    tl = c.input(last)
    logical = g.reshape(tl, reshape_mode=cudnn.reshape_mode.LOGICAL)
    logical.set_dim([6, 20])
    c.output("reshape logical", logical, last.reshape(6, 20))
    memory = g.reshape(tl, reshape_mode=cudnn.reshape_mode.VIEW_ONLY)
    memory.set_dim([40, 3])
    c.output("reshape of memory", memory, last.permute(0, 2, 3, 1).reshape(40, 3))
    strided = torch.randn(6, 8)[::2, ::4]
    c.output("strided input", g.identity(c.input(strided)), strided.contiguous())
    spread = torch.randn(3, 1).expand(3, 4)
    c.output("input with stride 0", g.identity(c.input(spread)), spread.contiguous())
    packed = torch.randn(2, 5, 3, 4, 8)[:, :, 1].permute(0, 2, 1, 3)
    c.output("packed q of qkv", g.identity(c.input(packed)), packed.contiguous())
    one = c.input(torch.tensor([[2.5]]), is_pass_by_value=True, name="alpha")
    flat = c.input(torch.randn(3, 4))
    c.output("scalar by value", g.mul(flat, one), c.pack[flat].cpu() * 2.5)
    c.output("number", g.add(flat, 1.5), c.pack[flat].cpu() + 1.5)
    empty = torch.randn(0, 4)
    c.output("no elements", g.relu(c.input(empty)), empty)
    return c.run()


@pytest.mark.parametrize(
    "name",
    [
        *REDUCTIONS,
        *("ADD all", "softmax", "softmax stats", "transpose", "slice", "slice with steps", "concatenate", "reshape"),
        *("reshape logical", "reshape of memory", "strided input", "input with stride 0", "packed q of qkv"),
        *("scalar by value", "number", "no elements"),
    ],
)
def test_move_or_reduce(moves: Cases, name: str):
    moves.check(name)
