"""BigBird's attention against Hugging Face's: the same weights, and our drawn blocks in both, for in evaluation theirs draws none."""

import pytest
import torch

from regard.nn.attention import BigBird
from regard.nn.attention.multihead import Attention, MultiHead
from regard.nn.view import Tokens, View

D, HEADS, SIZE, BLOCKS = 12, 3, 4, 9


def drawn(pattern):
    """The blocks that each row of blocks draws, for each head; the rows of the two ends have none."""
    _, _, random = pattern.parts
    place = torch.arange(BLOCKS)
    tables = []
    for head in range(HEADS):
        seen = random._drawn(place[:, None], place[None], torch.tensor(BLOCKS - 1), torch.tensor(head))
        tables.append(torch.stack([row.nonzero().squeeze(1) for row in seen[1:-1]]).numpy())
    return tables


@pytest.mark.parametrize("random", [1, 2])
def test_the_numbers_are_theirs(random):
    from transformers import BigBirdConfig
    from transformers.models.big_bird.modeling_big_bird import BigBirdBlockSparseAttention, BigBirdModel

    torch.manual_seed(0)
    config = BigBirdConfig(hidden_size=D, num_attention_heads=HEADS, block_size=SIZE, num_random_blocks=random, use_bias=True)
    theirs = BigBirdBlockSparseAttention(config, seed=0).train()
    pattern = BigBird(SIZE, random=random, seed=5)
    theirs._bigbird_block_rand_mask_with_head = lambda *_, **__: drawn(pattern)
    ours = MultiHead(Attention(pattern=(pattern,)), D, heads=HEADS, groups=HEADS, d_head=D // HEADS, pattern=(), name="own")
    for name in ("query", "key", "value"):
        getattr(ours, name).load_state_dict(getattr(theirs, name).state_dict())
    torch.nn.init.eye_(ours.output.weight)  # theirs has its output map elsewhere
    torch.nn.init.zeros_(ours.output.bias)

    x = torch.randn(2, SIZE * BLOCKS, D, requires_grad=True)
    blocked, band, rows, columns = BigBirdModel.create_masks_for_block_sparse_attn(torch.ones(2, SIZE * BLOCKS), SIZE)
    expected = theirs(x, band, rows, columns, blocked, blocked)[0]
    out = ours(x, View(Tokens.plain(2, SIZE * BLOCKS)))
    torch.testing.assert_close(out, expected, atol=2e-6, rtol=0)
    gradients = [torch.autograd.grad(values.square().sum(), x)[0] for values in (out, expected)]
    torch.testing.assert_close(*gradients, atol=2e-5, rtol=0)
