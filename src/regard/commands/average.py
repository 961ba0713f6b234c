"""`regard average`: the mean of several models' parameters, as a model."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="+", help="model folders of one run, or its checkpoints (checkpoints/step-N)")
    parser.add_argument("--to", required=True, help="folder of the averaged model")


def run(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from regard.errors import ModelError
    from regard.models.folder import verify
    from regard.models.saved import find_model, load_model, save_model
    from regard.models.tensors import read_tensors, restore, state_of
    from regard.train.average import mean_of

    folders = [Path(model) for model in arguments.models]
    steps = [folder for folder in folders if folder.parent.name == "checkpoints"]
    shape = load_model(steps[0].parent.parent if steps else folders[0])  # configuration and tokenizers of the run they belong to
    states = []
    for folder in folders:
        if folder in steps:
            try:
                verify(folder)
            except ModelError as error:
                raise ModelError(error.what, where=error.where, do="leave it out, or name another checkpoint") from None
            states.append(read_tensors(folder / "model.safetensors"))
        else:
            states.append(state_of(load_model(find_model(folder)).model))
    restore(shape.model, mean_of(states), where=arguments.to)
    save_model(
        Path(arguments.to),
        shape.model,
        shape.config,
        tokenizers=shape.tokenizers,
        tables=shape.tables,
        readme=(shape.folder / "README.md").read_text("utf-8") + f"\nThe mean of {len(folders)} models.\n",
    )
    return 0
