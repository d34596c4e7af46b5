"""Vision Transformer (arXiv:2010.11929), its parameters named as in the published checkpoints of timm."""

from __future__ import annotations

from dataclasses import dataclass

from ait_mlir.frontend import ops
from ait_mlir.frontend.errors import BuildError
from ait_mlir.frontend.nn.attention import MultiheadAttention
from ait_mlir.frontend.nn.linear import Linear
from ait_mlir.frontend.nn.module import Module, ModuleList
from ait_mlir.frontend.nn.norm import LayerNorm
from ait_mlir.frontend.nn.parameter import Parameter
from ait_mlir.frontend.tensor import Tensor


@dataclass(frozen=True)
class ViTConfig:
    """The sizes of a Vision Transformer; the defaults are ViT-B/16 at 224."""

    img_size: int = 224
    patch_size: int = 16
    in_chans: int = 3
    embed_dim: int = 768
    depth: int = 12
    num_heads: int = 12
    mlp_dim: int = 3072
    num_classes: int = 1000
    layer_norm_eps: float = 1e-6
    dtype: str = "float16"

    @property
    def patches(self) -> int:
        """Patches along one side of the image."""
        return self.img_size // self.patch_size


class PatchProjection(Module):
    """The weights of a convolution whose stride is its size: [embed_dim, channels, patch, patch]."""

    def __init__(self, config: ViTConfig):
        self.weight = Parameter([config.embed_dim, config.in_chans, config.patch_size, config.patch_size], config.dtype)
        self.bias = Parameter([config.embed_dim], config.dtype)


class PatchEmbed(Module):
    """An image [batch, channels, height, width] to one vector a patch [batch, patches, embed_dim].

    Such a convolution is a matrix product over the pixels of each patch.
    """

    def __init__(self, config: ViTConfig):
        if config.img_size % config.patch_size:
            raise BuildError(f"PatchEmbed: patches of {config.patch_size} do not divide an image of {config.img_size}")
        self.config = config
        self.proj = PatchProjection(config)

    def forward(self, x: Tensor) -> Tensor:
        config = self.config
        batch, n, size = x.shape()[0], config.patches, config.patch_size
        pixels = config.in_chans * size * size
        x = ops.reshape()(x, [batch, config.in_chans, n, size, n, size])
        x = ops.reshape()(ops.permute()(x, [0, 2, 4, 1, 3, 5]), [batch, n * n, pixels])
        weight = ops.reshape()(self.proj.weight.tensor(), [config.embed_dim, pixels])
        return ops.gemm_rcr_bias()(x, weight, self.proj.bias.tensor())


class ViTMlp(Module):
    """fc2(gelu(fc1(x))) + residual."""

    def __init__(self, config: ViTConfig):
        self.fc1 = Linear(config.embed_dim, config.mlp_dim, specialization="gelu", dtype=config.dtype)
        self.fc2 = Linear(config.mlp_dim, config.embed_dim, specialization="add", dtype=config.dtype)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.fc2(self.fc1(x), residual)


class ViTBlock(Module):
    """Attention, then the feed-forward block, each on the norm of its input and added to it."""

    def __init__(self, config: ViTConfig):
        width, dtype = config.embed_dim, config.dtype
        self.norm1 = LayerNorm(width, config.layer_norm_eps, dtype)
        self.attn = MultiheadAttention(width, num_heads=config.num_heads, qkv_bias=True, dtype=dtype)
        self.norm2 = LayerNorm(width, config.layer_norm_eps, dtype)
        self.mlp = ViTMlp(config)

    def forward(self, x: Tensor) -> Tensor:
        x = self.attn(self.norm1(x), x)
        return self.mlp(self.norm2(x), x)


class VisionTransformer(Module):
    """Images [batch, channels, height, width] to logits [batch, classes]; hidden states where there are no classes."""

    def __init__(self, config: ViTConfig):
        width, dtype = config.embed_dim, config.dtype
        self.config = config
        self.cls_token = Parameter([1, 1, width], dtype)
        self.pos_embed = Parameter([1, config.patches**2 + 1, width], dtype)
        self.patch_embed = PatchEmbed(config)
        self.blocks = ModuleList(ViTBlock(config) for _ in range(config.depth))
        self.norm = LayerNorm(width, config.layer_norm_eps, dtype)
        self.head = Linear(width, config.num_classes, dtype=dtype) if config.num_classes else None

    def forward(self, images: Tensor) -> Tensor:
        batch, width = images.shape()[0], self.config.embed_dim
        token = ops.expand()(self.cls_token.tensor(), [batch, 1, width])
        x = ops.concatenate()([token, self.patch_embed(images)], 1) + self.pos_embed.tensor()
        for block in self.blocks:
            x = block(x)
        if self.head is None:
            return self.norm(x)
        first = ops.dynamic_slice()(x, [None, 0, None], [None, 1, None])
        return self.head(self.norm(ops.reshape()(first, [batch, width])))
