"""Block-scaled fp8, as DeepSeek and Qwen publish it: weights of e4m3fn, and `weight_scale_inv` of 128 x 128 blocks.

Products round rows of their other factor to e4m3fn in the run, with a scale for each group as wide as a block.
"""

from __future__ import annotations

from ait_mlir.importers.checkpoints.files import Files
from ait_mlir.importers.checkpoints.stored import Activations, Scaled, StoredWeight
from ait_mlir.runtime.json_values import JsonValue

FLOAT8 = "float8_e4m3fn"
SUFFIX = "weight_scale_inv"


def read(files: Files, config: JsonValue) -> tuple[dict[str, StoredWeight], set[str]]:
    """The weights by name, and the names of the tensors that they are made of. Raises `JsonError` for a config that is
    not read."""
    form = config.get("fmt", "e4m3")
    if form.text() not in ("e4m3", FLOAT8):
        form.refuse("e4m3")
    sizes = config.at("weight_block_size").wholes(1)
    if len(sizes) != 2:
        config.at("weight_block_size").refuse("two numbers")
    blocks, dtype = (sizes[0], sizes[1]), files.model_dtype()
    scheme = config.get("activation_scheme", "dynamic")
    if scheme.text() != "dynamic":
        scheme.refuse("dynamic")
    plain = config.get("modules_to_not_convert", None)
    plain_modules = () if plain.is_null() else plain.texts()
    activations = Activations(FLOAT8, blocks[1])
    found: dict[str, StoredWeight] = {}
    for name in files:
        module, _, last = name.rpartition(".")
        if last == SUFFIX:
            if any(module == other or module.startswith(f"{other}.") for other in plain_modules):
                raise files.fail(name, "has scales, but the module is in modules_to_not_convert of the config")
            weight = files.matrix(f"{module}.weight", (FLOAT8,))
            shape = (-(-weight.shape[0] // blocks[0]), -(-weight.shape[1] // blocks[1]))
            scale = files.scale(name, shape, ("float32", "bfloat16", "float8_e8m0fnu"))
            stored = Scaled(FLOAT8, weight.shape[1], weight, scale, blocks)
            found[f"{module}.weight"] = StoredWeight(dtype, stored, activations=activations)
    for name in files:
        if name not in found and files.tensor(name).dtype.name == FLOAT8:
            raise files.fail(name, f"is {FLOAT8} but has no scales: there is no {name.removesuffix('weight')}{SUFFIX}")
    used = {*found, *(f"{name.removesuffix('weight')}{SUFFIX}" for name in found)}
    return found, used
