"""Tensors in a file, in the safetensors format: written one by one without a second copy, read only after the header was checked."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from regard.errors import ModelError

HEADER_LIMIT = 2**20  # bytes
COUNT_LIMIT = 4096
TYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def written(tensors: Mapping[str, Tensor]) -> Iterator[memoryview | bytes]:
    """The bytes of the file, piece by piece: length of the header, header, then each tensor (wide types first, so that all lie aligned)."""
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header, place = {}, 0
    for name in order:
        size = tensors[name].numel() * tensors[name].element_size()
        header[name] = {"dtype": TYPES[tensors[name].dtype], "shape": list(tensors[name].shape), "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    yield struct.pack("<Q", len(text)) + text
    for name in order:
        flat = tensors[name].detach().cpu().contiguous().flatten()
        if flat.numel():
            yield flat.view(torch.uint8).numpy().data


def size_of(tensors: Mapping[str, Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a file, on the CPU; sizes are checked before anything is allocated."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
            if not 0 < length <= HEADER_LIMIT:
                raise ModelError(f"its header would have {length} bytes", where=str(path))
            if (count := len(json.loads(file.read(length)))) > COUNT_LIMIT:
                raise ModelError(f"it holds {count} tensors, more than {COUNT_LIMIT}", where=str(path))
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no mapping)
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelError(f"it cannot be read: {error}", where=str(path)) from error


def state_of(module: torch.nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers by name; what is shared is there once, under its first name."""
    seen: set[int] = set()
    state = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            state[name] = tensor.detach()
    return state


@torch.no_grad()
def restore(module: torch.nn.Module, tensors: Mapping[str, Tensor], *, where: str) -> None:
    """Put the tensors into the module; names and shapes must be exactly its own."""
    state = state_of(module)
    if missing := sorted(set(state) - set(tensors)):
        raise ModelError(f"{missing[0]} is missing" + _more(missing), where=where, do="is it a checkpoint of another configuration?")
    if strange := sorted(set(tensors) - set(state)):
        raise ModelError(
            f"{strange[0]} is not of this model" + _more(strange), where=where, do="is it a checkpoint of another configuration?"
        )
    for name, tensor in state.items():
        if tensor.shape != tensors[name].shape:
            raise ModelError(f"{name} has the shape {tuple(tensors[name].shape)} and not {tuple(tensor.shape)}", where=where)
    for name, tensor in state.items():
        tensor.copy_(tensors[name])


def _more(names: list[str]) -> str:
    return f", and {len(names) - 1} more" if len(names) > 1 else ""
