"""Under autocast every linear map casts its input for itself; what feeds several of them is cast once."""

from __future__ import annotations

import torch
from torch import Tensor


def narrow(x: Tensor) -> Tensor:
    """The type that linear maps compute in here and now: the autocast's, where there is one."""
    kind = x.device.type
    return x.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else x
