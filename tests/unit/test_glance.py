"""What recurrent decoders look at their source with is one head of a Transformer's cross-attention."""

import torch

from regard.nn.attention.glance import Glance
from regard.nn.attention.multihead import Attention, MultiHead
from regard.nn.attention.normalise import Softmax
from regard.nn.attention.scores import ScaledDot
from regard.nn.view import Memory, Tokens, View

D, N, M = 6, 3, 5


def test_one_head_of_a_transformer_and_the_look_of_a_recurrent_decoder_are_one():
    torch.manual_seed(1)
    head = MultiHead(Attention(biases=False), D, heads=1, groups=1, d_head=D, pattern=(), name="cross").double()
    glance = Glance(ScaledDot(), Softmax(), keys="projected", d_query=D, d_memory=D, name="cross").double()
    for name in ("query", "key", "value"):
        getattr(glance, name).load_state_dict(getattr(head, name).state_dict())
    torch.nn.init.eye_(head.output.weight)

    real = torch.arange(M) < torch.tensor([[M], [2]])
    memory = Memory(torch.randn(2, M, D, dtype=torch.double), Tokens.padded(real))
    x = torch.randn(2, N, D, dtype=torch.double)
    looked = glance(x, *glance.project(memory), keys=memory.tokens, memo={}, name="cross")
    attended = head(x, View(Tokens.plain(2, N), (memory,)), 0)
    assert attended.shape == (2, N, D)
    torch.testing.assert_close(looked, attended)
