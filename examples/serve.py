"""A text encoder and an image classifier behind HTTP, each with several replicas, on this machine.

    python examples/serve.py                 # needs pip install 'ait_mlir[ray]'
    python examples/serve.py --replicas 1 --layers 12 --hidden 768

Both are networks of our builder with random weights: an encoder in the manner of BERT, whose answer is a vector for
each text, and a Vision Transformer. Requests that wait for the same model share a run. The program prints commands that
send requests. Each line of its input changes the weights of the text encoder while requests go on; Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ait_mlir.errors import AitError
from ait_mlir.frontend import IntVar, Tensor, compile_model, ops
from ait_mlir.frontend.nn.embedding import Embedding
from ait_mlir.frontend.nn.module import Module
from ait_mlir.frontend.nn.norm import LayerNorm
from ait_mlir.frontend.nn.parameter import Parameter
from examples.models.bert import BertConfig, BertEncoder
from examples.models.vit import VisionTransformer, ViTConfig

BATCH, LENGTH, VOCABULARY, IMAGE = 16, 128, 1000, 32
QUIET = {"log_level": "WARNING", "enable_access_log": False}


class TextEncoder(Module):
    """Token ids [batch, seq] to vectors [batch, hidden]: the mean over the text of BERT's hidden states."""

    def __init__(self, config: BertConfig):
        self.words = Embedding([config.vocab_size, config.hidden_size], config.dtype)
        self.places = Parameter([config.max_position_embeddings, config.hidden_size], config.dtype)
        self.norm = LayerNorm(config.hidden_size, config.layer_norm_eps, config.dtype)
        self.encoder = BertEncoder(config)

    def forward(self, ids: Tensor) -> Tensor:
        places = ops.dynamic_slice()(self.places.tensor(), [0, 0], [ids.shape()[1], None])
        return ops.reduce_mean(1)(self.encoder(self.norm(self.words(ids) + places)))


def random_weights(module: Module, seed: int) -> dict[str, Any]:
    """Small random values of the parameters of a module, by name."""
    random, found = np.random.default_rng(seed), {}
    for name, parameter in module.named_parameters():
        shape = [dim.value() for dim in parameter.tensor().shape()]
        found[name] = 0.1 * random.standard_normal(shape, np.float32)
    return found


def build(folder: Path, layers: int, hidden: int, device: str) -> tuple[Path, Path, Module]:
    """The artifacts of the text encoder and of the image classifier, and the module of the encoder."""
    batch, seq = IntVar([1, BATCH], "batch"), IntVar([1, LENGTH], "seq")
    heads = hidden // 64
    encoder = TextEncoder(BertConfig(VOCABULARY, hidden, layers, heads, 4 * hidden, LENGTH, dtype="float32"))
    vit = VisionTransformer(ViTConfig(IMAGE, 8, 3, hidden, layers, heads, 4 * hidden, 10, dtype="float32"))
    ids = Tensor([batch, seq], name="ids", dtype="int64", is_input=True)
    image = Tensor([batch, 3, IMAGE, IMAGE], name="image", dtype="float32", is_input=True)
    for module, value, name in ((encoder, ids, "text"), (vit, image, "images")):
        module.name_parameter_tensor(separator=".")
        output = module(value).mark_as_output("vector" if name == "text" else "logits")
        compile_model(output, device, folder, name, constants=random_weights(module, 0)).close()
    return folder / "text.ait", folder / "images.ait", encoder


def start(port: int) -> None:
    """Start Ray and its HTTP server on this machine."""
    import ray
    from ray import serve

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=2, object_store_memory=200 << 20, include_dashboard=False, logging_level="WARNING")
    serve.start(http_options={"host": "127.0.0.1", "port": port}, logging_config=QUIET)


def deploy(artifact: Path, replicas: int, weights: Path | None = None) -> None:
    """Serve an artifact under its name; if it is served already, change its weights."""
    from ray import serve

    from ait_mlir.serve import deployment

    actor = {"num_cpus": 1 / (2 * replicas)}  # two models share the processors
    options = {"num_replicas": replicas, "ray_actor_options": actor, "logging_config": QUIET}
    app = deployment(artifact, weights=weights, **options)
    serve.run(app, name=artifact.stem, route_prefix=f"/{artifact.stem}")


def stop() -> None:
    """Stop all that `start` and `deploy` started."""
    import ray
    from ray import serve

    serve.shutdown()
    ray.shutdown()


def serve_both(folder: Path, options: argparse.Namespace) -> None:
    """Serve both models until the input or the program ends."""
    text, images, encoder = build(folder, options.layers, options.hidden, options.device)
    np.save(folder / "image.npy", np.random.default_rng(0).standard_normal((1, 3, IMAGE, IMAGE), np.float32))
    try:
        start(options.port)
        deploy(text, options.replicas)
        deploy(images, options.replicas)
        address = f"http://127.0.0.1:{options.port}"
        print(f'curl -s {address}/text -d \'{{"inputs": {{"ids": [[17, 4, 256]]}}}}\'')
        print(f"curl -s {address}/images --data-binary @{folder / 'image.npy'} -o logits.npy")
        print(f"curl -s {address}/text  # the inputs, their dims, the weights", flush=True)
        for number, _ in enumerate(sys.stdin, 1):
            weights = folder / f"text-{number}.safetensors"
            save_file(random_weights(encoder, number), weights)
            deploy(text, options.replicas, weights)
            print(f"the text encoder has the weights {weights.name}", flush=True)
        signal.pause()
    finally:
        stop()


def main() -> int:
    parser = argparse.ArgumentParser(description="A text encoder and an image classifier behind HTTP.")
    parser.add_argument("--port", type=int, default=8000, help="default: %(default)s")
    parser.add_argument("--replicas", type=int, default=2, help="replicas of each model (default: %(default)s)")
    parser.add_argument("--layers", type=int, default=2, help="layers of each model (default: %(default)s)")
    parser.add_argument("--hidden", type=int, default=128, help="their width, a multiple of 64 (default: %(default)s)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="default: %(default)s")
    options = parser.parse_args()
    if options.hidden < 64 or options.hidden % 64:
        parser.error(f"--hidden {options.hidden}: expected a multiple of 64")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        try:
            serve_both(Path(folder), options)
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (AitError, ImportError) as error:
        sys.exit(f"{Path(sys.argv[0]).name}: {error}")
