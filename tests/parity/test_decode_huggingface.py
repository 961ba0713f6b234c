"""Cut-offs of sampling and the ban on repetition against those of Hugging Face."""

import pytest
import torch
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    NoRepeatNGramLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from regard.decode.constrain import NoRepeat
from regard.decode.draft import Job, Written
from regard.decode.sample import Sample, narrow
from regard.decode.state import Marks

LOGITS = 3 * torch.randn(17, 101, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    "settings",
    [
        {"temperature": 0.7},
        {"top_k": 7},
        {"top_p": 0.83},
        {"min_p": 0.11},
        {"temperature": 1.9, "top_k": 31, "top_p": 0.91, "min_p": 0.03},
    ],
    ids=str,
)
def test_cut_offs(settings):
    scores = LOGITS
    for name, warper in (
        ("temperature", TemperatureLogitsWarper),
        ("top_k", TopKLogitsWarper),
        ("top_p", TopPLogitsWarper),
        ("min_p", MinPLogitsWarper),
    ):
        if name in settings:
            scores = warper(settings[name])(None, scores)
    probs = narrow(LOGITS, Sample(**settings))
    torch.testing.assert_close(probs / probs.sum(1, keepdim=True), scores.softmax(1))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_repeat(size):
    tokens = torch.randint(3, 6, (19, 13), generator=torch.Generator().manual_seed(2))
    jobs = [Job((3, 2), 20)] * 19
    written = Written(19, 1, jobs=jobs, marks=Marks(), device=torch.device("cpu"), attention=False)
    written.begin(range(19), jobs)
    written.reserve(16)
    written.tokens[:, :13], written.lengths[:] = tokens, 13
    expected = NoRepeatNGramLogitsProcessor(size)(tokens, torch.zeros(19, 11)) == 0
    assert torch.equal(NoRepeat(size)(written, torch.ones(1, 11, dtype=torch.bool)), expected)
    assert not expected.all()
