"""Vision Transformer in plain PyTorch: the peer of `examples/models/vit.py`, with the parameter names of timm."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


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


class PatchEmbed(nn.Module):
    def __init__(self, config: ViTConfig):
        super().__init__()
        self.proj = nn.Conv2d(config.in_chans, config.embed_dim, config.patch_size, config.patch_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.proj(x).flatten(2).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, config: ViTConfig):
        super().__init__()
        self.heads = config.num_heads
        self.qkv = nn.Linear(config.embed_dim, 3 * config.embed_dim)
        self.proj = nn.Linear(config.embed_dim, config.embed_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, seq, hidden = x.shape
        split = (batch, seq, self.heads, hidden // self.heads)
        q, k, v = (t.view(split).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, seq, hidden))


class Mlp(nn.Module):
    def __init__(self, config: ViTConfig):
        super().__init__()
        self.fc1 = nn.Linear(config.embed_dim, config.mlp_dim)
        self.fc2 = nn.Linear(config.mlp_dim, config.embed_dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, config: ViTConfig):
        super().__init__()
        self.norm1 = nn.LayerNorm(config.embed_dim, config.layer_norm_eps)
        self.attn = Attention(config)
        self.norm2 = nn.LayerNorm(config.embed_dim, config.layer_norm_eps)
        self.mlp = Mlp(config)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    """Images [batch, channels, height, width] to logits [batch, classes]."""

    def __init__(self, config: ViTConfig):
        super().__init__()
        patches = (config.img_size // config.patch_size) ** 2
        self.cls_token = nn.Parameter(torch.empty(1, 1, config.embed_dim))
        self.pos_embed = nn.Parameter(torch.empty(1, patches + 1, config.embed_dim))
        self.patch_embed = PatchEmbed(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.embed_dim, config.layer_norm_eps)
        self.head = nn.Linear(config.embed_dim, config.num_classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        token = self.cls_token.expand(images.shape[0], -1, -1)
        x = torch.cat([token, self.patch_embed(images)], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))
