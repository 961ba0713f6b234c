"""Recurrent trunks are torch's cells: whole rows, one step at a time, from both sides, whatever the padding."""

import pytest
import torch
from torch import nn

from regard.nn.cells import KINDS
from regard.nn.trunk_recurrent import NoAttention, Recurrent, RecurrentDecoder, RecurrentEncoder
from regard.nn.view import Tokens, View

STEPS = {"rnn": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}
LENGTHS = [5, 1, 3]


def by_hand(cells: nn.RNNBase, x_TD: torch.Tensor, *, layer: int, way: str):
    """One layer in one direction, by torch's single-step cell; comes back as its outputs and its last state."""
    step = STEPS[{nn.RNN: "rnn", nn.GRU: "gru", nn.LSTM: "lstm"}[type(cells)]](x_TD.shape[1], cells.hidden_size).double()
    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
        getattr(step, name).data.copy_(getattr(cells, f"{name}_l{layer}{way}"))
    state, out = None, []
    for x in x_TD.flip(0) if way else x_TD:
        state = step(x[None], state)
        out.append(state[0][0] if isinstance(state, tuple) else state[0])
    last = torch.stack(state if isinstance(state, tuple) else (state,))[:, 0]
    return torch.stack(out[::-1] if way else out), last


@pytest.mark.parametrize("cell", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("padding", ["right", "left", "packed"])
def test_an_encoder_is_torchs_cell_over_each_sentence_alone(cell, bidirectional, padding):
    torch.manual_seed(5)
    trunk = RecurrentEncoder(Recurrent(cell=cell, layers=2, width=7, bidirectional=bidirectional, dropout=0.0), 3, name="encoder").double()
    texts = [torch.randn(length, 3, dtype=torch.double) for length in LENGTHS]
    if padding == "packed":
        x, tokens = torch.cat(texts)[None], Tokens.packed(torch.tensor(LENGTHS))
    else:
        x, real = torch.randn(3, 6, 3, dtype=torch.double), torch.zeros(3, 6, dtype=torch.bool)
        for row, text in enumerate(texts):
            place = slice(6 - len(text), 6) if padding == "left" else slice(len(text))
            x[row, place], real[row, place] = text, True
        tokens = Tokens.padded(real)
    memory = trunk.read(x, tokens)
    seen = iter(memory.states[tokens.real].split(LENGTHS))
    for row, text in enumerate(texts):
        out, ways = text, ("", "_reverse") if bidirectional else ("",)
        for layer in range(2):
            both = [by_hand(trunk.cells.layers, out, layer=layer, way=way) for way in ways]
            out, last = torch.cat([of[0] for of in both], -1), torch.cat([of[1] for of in both], -1)
            torch.testing.assert_close(memory.final[:, layer, row], last)
        torch.testing.assert_close(next(seen), out)


@pytest.mark.parametrize("cell", KINDS)
def test_a_decoder_alone_is_torchs_module(cell):
    torch.manual_seed(5)
    trunk = RecurrentDecoder(Recurrent(cell=cell, layers=2, width=7, attention=NoAttention(), dropout=0.0), 3, name="decoder")
    torchs = KINDS[cell](3, 7, 2, batch_first=True)
    trunk.cells.layers.load_state_dict(torchs.state_dict())
    x = torch.randn(2, 5, 3)
    torch.testing.assert_close(trunk(x, View(Tokens.plain(2, 5))), torchs(x)[0])
    state = trunk.new_state(2, 5)
    for step in range(5):
        facts = Tokens(torch.full((2, 1), step), torch.zeros(2, 1, dtype=torch.long), torch.ones(2, 1, dtype=torch.bool))
        out = trunk(x[:, step : step + 1], View(facts), state)
    torch.testing.assert_close(out, torchs(x)[0][:, -1:])
    state.clear([0])
    assert not state.layers[0].now["h"][0].any() and state.layers[0].now["h"][1].any()
