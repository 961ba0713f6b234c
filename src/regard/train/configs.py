"""The configuration of training: how long, how large the steps, what happens in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from regard.errors import UsageError
from regard.train.loss import CrossEntropy
from regard.train.optimise import AdamW, OptimiserConfig
from regard.train.schedule import InverseSqrt, Schedule


@dataclass(frozen=True)
class Train:
    """One run. It ends when the first of its limits is reached; one that is 0 does not count."""

    steps: int = 0
    "Most steps."
    epochs: float = 0.0
    "Most times through the data."
    seconds: float = 0.0
    "Most seconds by the clock, evaluations included; the schedule then follows the clock."
    accumulate: int = 1
    "Batches that make up one step, on each device."
    loss: CrossEntropy = CrossEntropy()
    "What is minimised."
    optimiser: OptimiserConfig = AdamW()
    "What is done with the gradient."
    schedule: Schedule = InverseSqrt()
    "The learning rate over time."
    clip: float = 1.0
    "Largest norm of the gradient of the mean loss; longer ones are shortened to it. 0 = off."
    ema: float = 0.0
    "Decay of the moving average of the parameters, which then is evaluated and exported; 0 = off."
    bad_steps: int = 10
    "So many steps in a row without a finite loss and gradient end the run; fewer are skipped."
    seed: int = 1
    "Of the first parameters, the order of the data and dropout."
    device: Literal["auto", "cpu", "cuda"] = "auto"
    "Where to compute."
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    "Type of the matrix products; auto takes what is faster here."
    compile: bool = False
    "Compile the model: some minutes at first, faster steps afterwards."
    log_every: int = 50
    "Steps between two lines of the log."
    evaluate_every: int = 1000
    "Steps between two evaluations; 0 = only at the end."
    sample_every: int = 500
    "Steps between two sample translations; 0 = none."
    save_every: int = 1000
    "Steps between two checkpoints; 0 = only at the end."
    keep: int = 2
    "Checkpoints kept besides the best, at least 2."
    keep_best: int = 1
    "Best checkpoints kept besides the newest."
    score: Literal["usual", "loss", "bleu", "accuracy"] = "usual"
    "What decides which model is the best; usual: BLEU of translations, the accuracy of labels and hulls, the loss of text and tours."
    patience: int = 0
    "So many evaluations in a row without a better score end the run; 0 = off."
    tensorboard: bool = False
    "Write the log for TensorBoard too."

    def __post_init__(self):
        least = {"accumulate": 1, "bad_steps": 1, "keep": 2}
        positive = "steps epochs seconds clip ema seed log_every evaluate_every sample_every save_every keep_best patience"
        for name in (*least, *positive.split()):
            if getattr(self, name) < least.get(name, 0):
                raise UsageError(f"{name} = {getattr(self, name)} makes no sense", do=f"take {least.get(name, 0)} or more")
        if self.ema >= 1:
            raise UsageError(f"ema = {self.ema} would never learn", do="take less than 1, such as 0.999")
