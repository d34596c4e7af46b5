"""Estimated times of collectives: what a link between cards takes for a message and for each byte (docs/scale.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from xdsl.ir import Operation

from ait_mlir.dialects.ait.collective import (
    AllGatherOp,
    AllReduceOp,
    AllSliceOp,
    AllToAllOp,
    BroadcastOp,
    CollectiveOp,
    CollectivePermuteOp,
    ReducedNormOp,
    ReduceScatterOp,
)
from ait_mlir.dialects.ait.types import tensor_type


@dataclass(frozen=True)
class Link:
    """A connection between cards: bytes per second of one card in one direction, and seconds of a collective without
    data."""

    bandwidth: float
    seconds: float


@dataclass(frozen=True)
class Cluster:
    """Cards in nodes of `node` cards each: the link inside of a node, and the one between nodes. `few` is how a library
    sends few bytes inside of a node, where that is faster; each member beyond two takes `step` more seconds. `peers`:
    all-reduces in one launch inside of a node, where that is faster."""

    node: int
    inside: Link
    between: Link
    few: Link | None = None
    step: float = 0.0
    peers: Link | None = None


NVLINK = Link(292e9, 21e-6)
"""Through 50 us at 8 MB and 78 us at 16 MB of an all-reduce of NCCL over two H200. Six H100 took 23 us at 0.5 MB, and
25 us at 1 MB."""
NVLINK_FEW = Link(150e9, 9e-6)
"""Through 9 us at 8 KB and 16 us at 1 MB of an all-reduce of NCCL, a residual and a norm over two H200."""
NVLINK_STEP = 3.5e-6
"""So that six cards take 23 us."""
PEERS = Link(280e9, 4.1e-6)
"""An all-reduce in one launch, with the bytes that a card sends: through 4.2 us at 32 KB, 7.9 us at 1 MB and 66 us at
16 MB over two H200."""
PEER_BYTES = 32 << 20
"""The bytes that the members of a group send to one of them in one launch, all together (`src/gpu/peers.cc`)."""
MOST_PEERS = 8
"""The most members of a group that write into each other's memory (`ait/peers_service.h`)."""
NETWORK = Link(50e9, 30e-6)
"""A network card of 400 Gbit/s for each card; its latency is an assumption."""
DEFAULT = Cluster(8, NVLINK, NETWORK, NVLINK_FEW, NVLINK_STEP)
"""Collectives of NCCL."""
WITH_PEERS = replace(DEFAULT, peers=PEERS)
"""The same, where cards write into each other's memory."""

_SHARES: dict[type[CollectiveOp], float] = {
    AllReduceOp: 2,
    ReducedNormOp: 2,
    AllGatherOp: 1,
    ReduceScatterOp: 1,
    AllToAllOp: 1,
    BroadcastOp: 1,
    CollectivePermuteOp: 1,
    AllSliceOp: 0,
}
"""How often the larger tensor of a collective passes a link of each of many members."""


def sent_bytes(op: CollectiveOp, whole: int) -> float:
    """The bytes that each member sends, if its larger tensor has `whole` bytes."""
    members = op.members()
    is_whole = isinstance(op, BroadcastOp | CollectivePermuteOp)
    return whole * _SHARES[type(op)] * (1 if is_whole else (members - 1) / members)


def collective_seconds(op: CollectiveOp, whole: int, cluster: Cluster = DEFAULT) -> float:
    """The estimated seconds of a collective whose larger tensor has `whole` bytes.

    Members on several nodes exchange inside of each node first, then each card its share with the other nodes, then
    inside of the node again.
    """
    members, share = op.members(), _SHARES[type(op)]
    if members == 1 or share == 0:
        return 0.0
    inside = min(members, cluster.node)
    if isinstance(op, CollectivePermuteOp):
        leave = any(source // inside != target // inside for source, target in op.messages())
        return _message_seconds(leave, whole, cluster)
    nodes = math.ceil(members / inside)
    found = 0.0
    if inside > 1:
        sent = share * whole * (inside - 1) / inside
        ways = [cluster.inside.seconds + sent / cluster.inside.bandwidth]
        if cluster.few is not None:
            latency = cluster.few.seconds + (inside - 2) * cluster.step
            ways.append(latency + sent / cluster.few.bandwidth)
        if cluster.peers is not None and nodes == 1 and has_room(op, whole):
            ways.append(cluster.peers.seconds + (members - 1) * whole / cluster.peers.bandwidth)
        found += min(ways)
    if nodes > 1:
        steps = math.ceil(math.log2(nodes))
        found += steps * cluster.between.seconds
        found += share * whole / inside * (nodes - 1) / nodes / cluster.between.bandwidth
    return found


def _message_seconds(leave: bool, whole: int, cluster: Cluster) -> float:
    """The seconds of messages of `whole` bytes that are under way at the same time, some of which `leave` a node."""
    links = (cluster.between,) if leave else (cluster.inside, cluster.few)
    return min(link.seconds + whole / link.bandwidth for link in links if link is not None)


def has_room(op: CollectiveOp, whole: int) -> bool:
    """Whether an op can write `whole` bytes of each member into the memory of each other member, in one launch."""
    fits = op.members() <= MOST_PEERS and whole * op.members() <= PEER_BYTES
    return fits and isinstance(op, AllReduceOp | ReducedNormOp)


def whole_bytes(op: Operation, env: dict[str, int]) -> int:
    """The bytes of the larger of operand and result of a collective."""
    return max(tensor_type(value).byte_size().evaluate(env) for value in (*op.operands, *op.results))
