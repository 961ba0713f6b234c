"""The Transformer's trunk: a stack of blocks, each the paper's figure. Encoder, decoder and decoder-only differ in what they see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.errors import UsageError
from regard.nn.attention.lowrank import Common
from regard.nn.attention.multihead import Attention
from regard.nn.attention.segments import TransformerXL
from regard.nn.attention.slot import Slot
from regard.nn.attention.slots import Cross, Own, build_attention
from regard.nn.cache import State, new_state
from regard.nn.experts import Experts, build_feed_forward
from regard.nn.feedforward import FeedForward
from regard.nn.narrow import narrow
from regard.nn.norms import BatchNorm, LayerNorm, Norm, build_norm, normed
from regard.nn.residual import Placement, Residual
from regard.nn.tap import tap
from regard.nn.trunk import Trunk
from regard.nn.view import Memory, Tokens, View


@dataclass(frozen=True)
class Transformer:
    """A stack of blocks of attention and feed-forward layers."""

    kind: ClassVar[Literal["transformer"]] = "transformer"
    layers: int = 6
    "How many blocks."
    heads: int = 8
    "Attention heads of every slot."
    key_value_heads: int = 0
    "Heads of keys and values, shared by several query heads (GQA, MQA); 0: as many as heads."
    d_head: int = 0
    "Width of a head; 0: d_model / heads."
    own: Own = Attention()
    "Self-attention."
    cycle: tuple[Own, ...] = ()
    "Self-attentions that the layers have in turn, in place of `own`: a local and a compressed one make L M L M L of five layers."
    cross: Cross = Attention()
    "Attention to the encoder; read by decoders only."
    feed_forward: FeedForward | Experts = FeedForward()
    "The position-wise layer, or several of which each token takes a few."
    feed_forward_cycle: tuple[FeedForward | Experts, ...] = ()
    "Position-wise layers that the layers have in turn, in place of `feed_forward`: experts in some of the blocks alone."
    norm: Norm = LayerNorm()
    "The norm around each sublayer."
    placement: Placement = "post"
    "post: after the residual sum, as the paper; pre: before the sublayer, and once more at the end."
    final_norm: bool = False
    "One more norm at the end of a post-norm stack (a pre-norm stack always has it)."
    dropout: float = 0.1
    "Dropout on what each sublayer adds."
    skip: bool = True
    "The residual connection; false only to see what happens without."

    @property
    def recalls(self) -> bool:
        """Whether its layers remember the segment before."""
        return any(isinstance(self.own_of(layer), TransformerXL) for layer in range(self.layers))

    def own_of(self, layer: int) -> Own:
        """The self-attention of this layer."""
        return self.cycle[layer % len(self.cycle)] if self.cycle else self.own

    def feed_forward_of(self, layer: int) -> FeedForward | Experts:
        """The position-wise layer of this layer."""
        several = self.feed_forward_cycle
        return several[layer % len(several)] if several else self.feed_forward


class Block(nn.Module):
    """x + attention, then (in a decoder) x + cross-attention, then x + feed-forward; each with its norm."""

    cross: Sequence[Slot]  # one for each memory, in nn.ModuleLists
    cross_residual: Sequence[Residual]

    def __init__(self, config: Transformer, d_model: int, *, layer: int, causal: bool, memories: int, common: Common, name: str):
        super().__init__()
        axes = {
            "heads": config.heads,
            "groups": config.key_value_heads or config.heads,
            "d_head": config.d_head or d_model // config.heads,
            "common": common,
        }
        residual = {"placement": config.placement, "dropout": config.dropout, "skip": config.skip}
        self.name = name
        self.own = build_attention(config.own_of(layer), d_model, causal=causal, name=f"{name}.own", **axes)
        self.own_residual = Residual(config.norm, d_model, name=f"{name}.own", **residual)
        names = ["cross"] if memories == 1 else [f"cross{i}" for i in range(memories)]
        self.cross = nn.ModuleList(  # type: ignore[assignment]
            build_attention(config.cross, d_model, causal=False, name=f"{name}.{cross}", **axes) for cross in names
        )
        self.cross_residual = nn.ModuleList(Residual(config.norm, d_model, name=f"{name}.{cross}", **residual) for cross in names)  # type: ignore[assignment]
        self.feed_forward = build_feed_forward(config.feed_forward_of(layer), d_model, name=name)
        self.feed_forward_residual = Residual(config.norm, d_model, name=f"{name}.feed_forward", **residual)

    def forward(self, x_BTD: Float[Tensor, "B T D"], view: View) -> Float[Tensor, "B T D"]:
        real = view.own.real
        x_BTD = self.own_residual(x_BTD, lambda x: self.own(x, view), real)
        for memory, (cross, residual) in enumerate(zip(self.cross, self.cross_residual, strict=True)):
            x_BTD = residual(x_BTD, lambda x, cross=cross, memory=memory: cross(x, view, memory), real)
        return tap(self.feed_forward_residual(x_BTD, lambda x: self.feed_forward(x, view.own), real), f"{self.name}.stream")

    def step(self, x_RTD: Tensor, view: View, state: State, layer: int, sources: tuple[Tokens, ...]) -> Tensor:
        past, slots = state.layers[layer], state.slots
        real = view.own.real
        x_RTD = self.own_residual(x_RTD, lambda x: self.own.step(x, view, past, slots), real)
        for cross, residual, memory, tokens in zip(self.cross, self.cross_residual, state.cross[layer], sources, strict=True):
            x_RTD = residual(x_RTD, lambda x, cross=cross, memory=memory, tokens=tokens: cross.look(x, view, memory, tokens), real)
        return tap(self.feed_forward_residual(x_RTD, lambda x: self.feed_forward(x, view.own), real), f"{self.name}.stream")


class TransformerTrunk(Trunk):
    """Blocks in a row. With a state it goes on from what the state holds; without, it sees the whole row at once."""

    blocks: Sequence[Block]  # in an nn.ModuleList

    def __init__(self, config: Transformer, d_model: int, *, causal: bool, memories: int = 0, name: str):
        super().__init__()
        if not config.d_head and d_model % config.heads:
            raise UsageError(
                f"d_model {d_model} does not divide into {config.heads} heads", where=name, do="choose a divisor, or set d_head"
            )
        if config.recalls and not all(isinstance(own, TransformerXL) for own in config.cycle or (config.own,)):
            do = "give all of them the slot transformer-xl"
            raise UsageError("some of its layers remember the segment before, and some do not", where=name, do=do)
        if causal and isinstance(config.norm, BatchNorm):
            do = "keep it for encoders; choose layer or rms"
            raise UsageError("a batch norm takes its means over all words, those to come among them", where=f"{name}.norm", do=do)
        axes = {"causal": causal, "memories": memories, "common": {}}
        self.blocks = nn.ModuleList(  # type: ignore[assignment]
            Block(config, d_model, layer=layer, name=f"{name}.{layer}", **axes) for layer in range(config.layers)
        )
        last = config.placement == "pre" or config.final_norm
        self.norm = build_norm(config.norm, d_model) if last else nn.Identity()
        self.name, self.memories, self.width, self.heads = name, memories, d_model, config.heads
        self.own_maps = tuple(layer for layer, block in enumerate(self.blocks) if block.own.maps)
        self.cross_maps = tuple(layer for layer, block in enumerate(self.blocks) if memories and block.cross[0].maps)
        self.packs = all(slot.packs for block in self.blocks for slot in (block.own, *block.cross))

    def forward(self, x_BTD: Float[Tensor, "B T D"], view: View, state: State | None = None) -> Float[Tensor, "B T D"]:
        sources = state.memory_tokens if state is not None else ()
        for layer, block in enumerate(self.blocks):
            x_BTD = block(x_BTD, view) if state is None else block.step(x_BTD, view, state, layer, sources)
        return tap(narrow(normed(self.norm, x_BTD, view.own.real)), f"{self.name}.states")

    def new_state(self, rows: int, capacity: int, *, beam: int = 1, device: torch.device | str = "cpu") -> State:
        kept = [block.own.new_cache(rows, capacity) for block in self.blocks]
        return new_state(rows, capacity, layers=kept, fixed=len(kept), memories=self.memories, beam=beam, device=device)

    def project(self, state: State, memories: tuple[Memory, ...], slots: Tensor | None) -> None:
        for block, fixed in zip(self.blocks, state.cross, strict=True):
            for cross, kept, memory in zip(block.cross, fixed, memories, strict=True):
                kept.write(*cross.project(memory.states, memory.tokens), slots)
