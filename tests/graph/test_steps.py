"""Keys of variant packs, scalars, other shapes, decorators, the wrapper, handles, names of the reference package."""

from __future__ import annotations

import inspect
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

import ait_mlir.graph as cudnn
from tests.graph.dense import FLOAT, HALF, A, check, data, dense, new, workspace


def test_keys_of_a_variant_pack():
    g, tensors = dense()
    g.build([A])
    pack = data()
    space = workspace(g.get_workspace_size())
    for keys in (tensors, {n: n for n in tensors}, {n: t.get_uid() for n, t in tensors.items()}):
        g.execute({keys[n]: pack[i] for i, n in enumerate("xwby", 1)}, space)
        check(pack)
    g.execute({**pack, 4: pack[4].data_ptr()}, space)
    check(pack)
    g.execute({**pack, 1: pack[1].reshape(-1), 4: pack[4].reshape(1, 16, 24)}, space)
    check(pack)


def test_numpy_and_dlpack():
    g, _ = dense()
    g.build([A])
    arrays: dict[int, Any] = {i: t.numpy() for i, t in data().items()}
    g.execute(arrays, np.empty(g.get_workspace_size(), np.uint8))
    check({i: torch.from_numpy(a) for i, a in arrays.items()})

    class Exported:
        def __init__(self, t: torch.Tensor) -> None:
            self.__dlpack__ = t.__dlpack__
            self.__dlpack_device__ = t.__dlpack_device__

    jax = pytest.importorskip("jax.numpy")
    pack = data()
    g.execute({**pack, 1: jax.asarray(pack[1].numpy())}, workspace(g.get_workspace_size()))
    check(pack)
    x = g.__class__(handle=g.handle).tensor_like(jax.ones((2, 3)))
    assert (x.get_dim(), x.get_stride(), x.get_data_type()) == ([2, 3], [3, 1], FLOAT)


def test_nothing_is_allocated_and_the_workspace_is_the_callers():
    """The arena of the library stays empty, and the content of the workspace may be anything."""
    g = new()
    x, w = g.tensor([8, 32]), g.tensor([32, 8])
    y = g.matmul(g.exp(x), w).set_output(True)
    g.build([A])
    values, weights = torch.randn(8, 32), torch.randn(32, 8)
    out = torch.empty(8, 8)
    space = workspace(g.get_workspace_size() + 4096)
    for fill in (0, 255):
        space.fill_(fill)
        g.execute({x: values, w: weights, y: out}, space)
        torch.testing.assert_close(out, values.exp() @ weights)
    used = (space != 255).nonzero()
    assert len(used) > 0
    assert int(used.max()) < g.get_workspace_size()


def test_scalar_that_is_part_of_the_code_selects_it():
    g = new()
    x, scale = g.tensor([4, 16]), g.tensor([1, 16])
    eps = g.tensor([1, 1], is_pass_by_value=True, name="eps")
    y, _, _ = g.layernorm(
        norm_forward_phase=cudnn.norm_forward_phase.INFERENCE, input=x, scale=scale, epsilon=eps, name="ln"
    )
    y.set_output(True)
    g.build()
    values, gain, out = torch.randn(4, 16) * 0.01, torch.rand(1, 16), torch.empty(4, 16)
    for number in (1e-5, 1e-2, torch.full((1, 1), 1e-2), np.float32(1e-5)):
        g.execute({x: values, scale: gain, y: out, eps: number}, workspace(4096))
        expected = torch.nn.functional.layer_norm(values, (16,), gain[0], eps=float(number))
        torch.testing.assert_close(out, expected, atol=1e-4, rtol=1e-3)
    assert len(g.plans[0].compiled) == 2


def test_scalar_with_a_default():
    g = new()
    x = g.tensor([4])
    alpha = g.tensor_scalar(3.0, cudnn.scalar_type.RUNTIME_PARAM, name="alpha")
    y = g.mul(x, g.mul(alpha, g.tensor_scalar(0.5, cudnn.scalar_type.COMPILE_TIME_CONST))).set_output(True)
    y.set_dim([1, 1, 1, 4])
    g.build()
    out = torch.empty(1, 1, 1, 4)
    g.execute({x: torch.ones(4), y: out})
    assert out.flatten().tolist() == [1.5] * 4
    g.execute({x: torch.ones(4), y: out, "alpha": 8.0})
    assert out.flatten().tolist() == [4.0] * 4


def test_other_shapes():
    g, _ = dense(is_override_shape_enabled=True)
    g.build([A])
    for m in (16, 5, 16):
        pack = data(m)
        over = {"override_uids": [1, 4], "override_shapes": [[m, 32], [m, 24]], "override_strides": [[32, 1], [24, 1]]}
        size = g.get_workspace_size(**over)
        g.execute(pack, workspace(size), **over)
        check(pack)
    assert len(g.compilation._shapes) == 2
    with pytest.raises(cudnn.InputError, match="override of UID 77"):
        g.execute(data(), None, override_uids=[77], override_shapes=[[1]], override_strides=[[1]])


def test_cache_and_jit():
    made: list[int] = []

    @cudnn.jit(heur_modes=A)
    @cudnn.graph_cache(key_fn=lambda handle, n: n, maxsize=2)
    def build(handle: Any, n: int) -> Any:
        made.append(n)
        with cudnn.graph(handle, io_data_type=FLOAT) as (g, _):
            x = g.tensor([n])
            y = g.relu(x).set_output(True)
        return g, [x, y]

    handle = cudnn.create_handle(device="cpu")
    first, uids = build(handle, 4)
    assert build(handle, 4) == (first, uids)
    out = torch.empty(4)
    first.execute(dict(zip(uids, (torch.tensor([-1.0, 2, -3, 4]), out), strict=True)))
    assert out.tolist() == [0, 2, 0, 4]
    build(handle, 5)
    build(handle, 4)
    build(handle, 6)
    assert made == [4, 5, 6]
    build(handle, 5)
    assert made == [4, 5, 6, 5]


def test_wrapper():
    x, w = torch.randn(2, 8, 16), torch.randn(1, 16, 4)
    with cudnn.Graph(handle=cudnn.create_handle(device="cpu")) as g:
        y = g.matmul(x, w, name="mm")
        g.relu(y, name="act").set_output(True)
    g.set_io_tuples(["mm::A", "mm::B"], ["act::OUT_0"])
    torch.testing.assert_close(g(x, w), torch.relu(x @ w), atol=1e-5, rtol=1e-5)
    other = torch.randn(2, 8, 16)
    torch.testing.assert_close(g(other, w), torch.relu(other @ w), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(g(**{"mm::B": w, "mm::A": x}), torch.relu(x @ w), atol=1e-5, rtol=1e-5)


def test_handles_and_versions():
    handle = cudnn.create_handle(device="cpu", stream=5)
    assert cudnn.get_stream(handle) == 5
    cudnn.set_stream(handle, 0)
    assert cudnn.get_stream(handle) == 0
    assert cudnn.backend_version() > 0
    assert cudnn.backend_version_string().count(".") == 2
    assert cudnn.create_kernel_cache().path in repr(cudnn.create_kernel_cache())


def test_tensor_like_keeps_strides_and_type():
    g = new()
    for t in (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.randn(4, 6)[:, ::2].half()):
        like = g.tensor_like(t)
        assert (tuple(like.get_dim()), tuple(like.get_stride())) == (tuple(t.shape), t.stride())
        assert like.get_data_type() is {torch.float32: FLOAT, torch.float16: HALF}[t.dtype]
        assert not like.get_is_virtual()
    scalar = g.tensor_like(torch.ones(1, 1))
    assert scalar.get_is_pass_by_value()
    again = g.tensor_like(like, name="again")
    assert (again.get_stride(), again.get_name()) == (like.get_stride(), "again")


def test_queries():
    g, tensors = dense()
    g.validate()
    mm = g.get_node("mm")
    assert mm.outputs["C"].get_is_virtual()
    assert mm.outputs["C"].get_dim() == [16, 24]
    assert g.find_tensor("y") is tensors["y"] is g.find_tensor(4)
    assert g.inputs() == [tensors[n] for n in "xwb"]
    assert g.outputs() == [tensors["y"]]
    assert len({t.get_uid() for t in g.tensors}) == len(g.tensors)


@pytest.mark.gpu
def test_stream_of_no_named_device():
    stream = torch.cuda.Stream()
    general = torch.Stream(stream_id=stream.stream_id, device_index=stream.device_index, device_type=stream.device_type)
    assert cudnn.get_stream(cudnn.create_handle(stream=general)) == stream.cuda_stream


@pytest.mark.gpu
def test_the_handles_stream_is_used():
    """A graph that waits for work on its stream sees the result of that work."""
    stream = torch.cuda.Stream()
    handle = cudnn.create_handle(device="cuda:0", stream=stream)
    g = cudnn.pygraph(handle=handle, io_data_type=FLOAT, intermediate_data_type=FLOAT, compute_data_type=FLOAT)
    x = g.tensor([1 << 20])
    y = g.add(x, 1.0).set_output(True)
    g.build()
    values, out = torch.zeros(1 << 20, device="cuda"), torch.empty(1 << 20, device="cuda")
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        values.fill_(3)
        g.execute({x: values, y: out}, None, handle=handle)
    stream.synchronize()
    assert (out == 4).all()


@pytest.mark.gpu
def test_cuda_graph_is_populated_and_updated():
    from cuda.bindings import runtime

    handle = cudnn.create_handle(device="cuda:0")
    g = cudnn.pygraph(handle=handle, io_data_type=FLOAT, intermediate_data_type=FLOAT, compute_data_type=FLOAT)
    x = g.tensor([64, 32])
    y = g.exp(g.reduction(x, mode=cudnn.reduction_mode.ADD).set_dim([64, 1])).set_output(True)
    g.build()
    space = torch.empty(g.get_workspace_size(), dtype=torch.uint8, device="cuda")
    values = [torch.randn(64, 32, device="cuda") * 0.1 for _ in range(2)]
    outs = [torch.zeros(64, 1, device="cuda") for _ in range(2)]
    g.execute({x: values[0], y: outs[0]}, space)
    outs[0].zero_()
    _, graph = runtime.cudaGraphCreate(0)
    g.populate_cuda_graph(handle, {x: values[0], y: outs[0]}, space, int(graph))
    for i in range(2):
        if i:
            g.update_cuda_graph(handle, {x: values[1], y: outs[1]}, space, int(graph))
        _, made = runtime.cudaGraphInstantiate(graph, 0)
        runtime.cudaGraphLaunch(made, 0)
        torch.cuda.synchronize()
        torch.testing.assert_close(outs[i], values[i].sum(1, keepdim=True).exp(), atol=1e-4, rtol=1e-4)


@pytest.mark.gpu
def test_tensors_on_another_device():
    g = cudnn.pygraph(handle=cudnn.create_handle(device="cuda:0"), io_data_type=FLOAT, compute_data_type=FLOAT)
    x = g.tensor([4], name="x")
    y = g.relu(x).set_output(True)
    g.build()
    with pytest.raises(cudnn.InputError, match="tensor 'x' is on cpu, but the graph"):
        g.execute({x: torch.ones(4), y: torch.empty(4, device="cuda")})


@pytest.mark.gpu
def test_scalar_by_value_on_a_card():
    g = cudnn.pygraph(handle=cudnn.create_handle(device="cuda:0"), io_data_type=FLOAT, compute_data_type=FLOAT)
    x, alpha = g.tensor([64]), g.tensor([1], is_pass_by_value=True, name="alpha")
    y = g.mul(x, alpha).set_output(True)
    g.build()
    space = torch.empty(g.get_workspace_size(), dtype=torch.uint8, device="cuda")
    for number in (2.0, torch.tensor([0.5])):
        out = torch.empty(64, device="cuda")
        g.execute({x: torch.ones(64, device="cuda"), y: out, alpha: number}, space)
        assert (out.cpu() == float(number)).all()


METHODS = """abs adalayernorm adalayernorm_backward add add_square batchnorm batchnorm_backward batchnorm_inference bias
binary_select block_scale_dequantize block_scale_quantize build build_operation_graph build_plan_at_index build_plans ceil
check_support cmp_eq cmp_ge cmp_gt cmp_le cmp_lt cmp_neq concatenate conv_dgrad conv_fprop conv_wgrad cos
create_execution_plan create_execution_plans deselect_behavior_notes deselect_engines deselect_numeric_notes
deselect_workspace_greater_than deserialize div elu elu_backward erf execute execute_plan_at_index exp find_tensor floor gdn
gelu gelu_approx_tanh gelu_backward gen_index genstats get_behavior_notes get_behavior_notes_for_plan_at_index
get_engine_and_knobs_at_index get_execution_plan_count get_inputs get_node get_outputs get_plan_name_at_index
get_workspace_size get_workspace_size_plan_at_index identity inspect instancenorm instancenorm_backward kda key layernorm
layernorm_backward leaky_relu leaky_relu_backward log logical_and logical_not logical_or mamba2 matmul max min mod
moe_grouped_matmul mul neg plans populate_cuda_graph pow reciprocal reduction relu relu_backward reshape rmsnorm
rmsnorm_backward rope rope_backward rsqrt scale sdpa sdpa_backward sdpa_fp8 sdpa_mxfp8 select_behavior_notes
select_numeric_notes select_plan serialize sigmoid sigmoid_backward sin slice softplus softplus_backward sqrt sub swish
swish_backward tan tanh tanh_backward tensor tensor_like tensor_scalar transpose update_cuda_graph validate"""
TENSOR_METHODS = """get_alignment get_data_type get_dim get_has_compile_time_constant get_is_pass_by_value get_is_virtual
get_name get_ragged_offset_multiplier get_reordering_type get_stride get_uid get_vector_count get_vector_dimension
set_alignment set_data_type set_dim set_is_pass_by_value set_is_virtual set_name set_output set_ragged_offset
set_ragged_offset_multiplier set_reordering_type set_stride set_uid set_vector_count_and_dimension"""


def test_methods_of_the_reference_package():
    """The public methods of nvidia-cudnn-frontend 1.32, each with a docstring of ours."""
    for owner, names in ((cudnn.pygraph, METHODS), (cudnn.tensor, TENSOR_METHODS)):
        missing = [n for n in names.split() if not hasattr(owner, n)]
        assert missing == []
    assert all(getattr(cudnn.pygraph, n).__doc__ for n in METHODS.split())


POSITIONAL = {
    "gen_index": ("input", "axis", "name", "compute_data_type"),
    "leaky_relu": ("input", "negative_slope", "name", "compute_data_type"),
    "matmul": ("A", "B", "compute_data_type", "padding", "name"),
    "relu": ("input", "negative_slope", "lower_clip", "upper_clip", "name", "compute_data_type"),
    "swish": ("input", "swish_beta", "name", "compute_data_type"),
    "execute": (
        *("tensor_dict", "workspace", "handle", "override_uids", "override_shapes", "override_strides", "tensor_uids"),
    ),
    "execute_plan_at_index": ("tensor_dict", "workspace", "index", "handle"),
    "get_workspace_size": ("handle", "override_uids", "override_shapes", "override_strides"),
    "get_workspace_size_plan_at_index": ("index", "handle", "override_uids", "override_shapes", "override_strides"),
    "populate_cuda_graph": ("handle", "variant_pack", "workspace", "cuda_graph"),
    "update_cuda_graph": ("handle", "variant_pack", "workspace", "cuda_graph"),
}
"""The arguments that may be given without a keyword, in the order of the reference package."""


@pytest.mark.parametrize("name", POSITIONAL)
def test_positional_arguments_of_the_reference_package(name: str):
    parameters = list(inspect.signature(getattr(cudnn.pygraph, name)).parameters.values())
    found = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self")
    assert found == POSITIONAL[name]


def test_arguments_by_position():
    g = new()
    x = g.tensor([4, 4])
    y = g.matmul(x, x, cudnn.data_type.FLOAT, 0.0, "mm")
    z = g.relu(y, 0.25, 0.5, 2.0, "clip", cudnn.data_type.FLOAT)
    assert [n.name for n in g.nodes] == ["mm", "clip"]
    assert g.nodes[1].attributes == {"negative_slope": 0.25, "lower_clip": 0.5, "upper_clip": 2.0}
    with pytest.raises(TypeError, match=r"relu\(\) takes 6 arguments, got 7"):
        g.relu(z, None, None, None, "n", None, 1)
    with pytest.raises(TypeError, match="got name twice"):
        g.relu(z, None, None, None, "n", name="m")


def test_numbers_are_no_inputs():
    g = new()
    q = g.tensor([1, 2, 4, 8], name="q")
    o, _ = g.sdpa(q, q, q, attn_scale=0.5)
    g.mul(o, g.tensor_scalar(2.0)).set_output(True)
    assert g.get_inputs() == [q]


def test_out_dims():
    g = new()
    x = g.tensor([4, 6])
    assert g.reduction(x, mode=cudnn.reduction_mode.ADD, out_dims=[4, 1]).dim == [4, 1]
    assert g.reshape(x, out_dims={"OUT_0": [2, 12]}).dim == [2, 12]
    with pytest.raises(cudnn.GraphError, match="out_dims are for 'Y'; the outputs are OUT_0"):
        g.reshape(x, out_dims={"Y": [2, 12]}, name="r")
    with pytest.raises(cudnn.GraphError, match=r"'r2' .* has dims \[5\], 5 elements"):
        h = new()
        h.reshape(h.tensor([4, 6]), out_dims=[5], name="r2").set_output(True)
        h.validate()


def test_attributes_of_tensors():
    g = new()
    t = g.tensor([2, 3], name="x", data_type=cudnn.data_type.HALF)
    scalar = g.tensor_scalar(0.5)
    assert (t.dim, t.stride, t.data_type, t.is_pass_by_value) == ([2, 3], [3, 1], cudnn.data_type.HALF, False)
    assert (scalar.is_pass_by_value, scalar.pass_by_value) == (True, 0.5)
    assert (t.ragged_offset_multiplier, t.reordering_type) == (1, cudnn.tensor_reordering.NONE)
    assert g.get_cuda_graph_retention() is cudnn.cuda_graph_retention.NONE


def test_graph_as_plain_data():
    g, _ = dense()
    g.validate()
    told = g.inspect()
    assert [n["operation"] for n in told["nodes"]] == ["matmul", "bias", "relu"]
    assert told["nodes"][0]["inputs"] == {"A": "x", "B": "w"}
    assert {t["name"]: t["dim"] for t in told["tensors"]}["y"] == [16, 24]


def test_threads_with_workspaces_of_their_own():
    g = new()
    x = g.tensor([16, 32])
    total = g.reduction(g.exp(x), mode=cudnn.reduction_mode.ADD).set_dim([16, 1])
    y = g.div(g.exp(x), total).set_output(True)
    g.build()

    def work(seed: int) -> float:
        values = torch.randn(16, 32, generator=torch.Generator().manual_seed(seed))
        expected, out, space = values.softmax(1), torch.empty(16, 32), workspace(g.get_workspace_size())
        worst = 0.0
        for _ in range(5):
            out.fill_(0)
            g.execute({x: values, y: out}, space)
            worst = max(worst, (out - expected).abs().max().item())
        return worst

    with ThreadPoolExecutor(2) as pool:
        assert max(pool.map(work, range(4))) < 1e-5
