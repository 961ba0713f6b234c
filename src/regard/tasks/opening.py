"""Which job a run is: its model says so."""

from __future__ import annotations

from pathlib import Path
from typing import assert_never

from regard.data.spelling import Pitches
from regard.models.configs import EncoderDecoder, ImageCaptioner, LanguageModel, MaskedLanguageModel, PointerNetwork, Tagger, TextClassifier
from regard.models.graph_classifier import GraphClassifier
from regard.models.image_classifier import ImageClassifier
from regard.models.saved import Saved
from regard.models.speech import Speech
from regard.run import Run
from regard.tasks.protocol import Task
from regard.train.parallel import Ranks
from regard.train.signals import Signals


def open_task(run: Run, out: Path, *, ranks: Ranks, signals: Signals, warm: Saved | None = None) -> Task:
    """The run's job, its data read, and its model's configuration completed by them."""
    match run.model:
        case EncoderDecoder() as config:
            from regard.tasks.translation import open_translation

            return open_translation(run, config, out, ranks=ranks, signals=signals, warm=warm)
        case LanguageModel() as config if isinstance(run.tokenizer, Pitches):
            from regard.tasks.music import open_music

            return open_music(run, config, out, ranks=ranks, warm=warm)
        case LanguageModel() as config:
            from regard.tasks.completing import open_completion, reads_pairs
            from regard.tasks.language_modelling import open_language_modelling

            if reads_pairs(run):
                return open_completion(run, config, out, ranks=ranks, warm=warm)
            return open_language_modelling(run, config, out, ranks=ranks, signals=signals, warm=warm)
        case MaskedLanguageModel() as config:
            from regard.tasks.masked_modelling import open_masked_modelling

            return open_masked_modelling(run, config, out, ranks=ranks, signals=signals, warm=warm)
        case Tagger() as config:
            from regard.tasks.tagging import open_tagging

            return open_tagging(run, config, out, ranks=ranks, warm=warm)
        case TextClassifier() as config:
            from regard.tasks.text_labelling import open_texts

            return open_texts(run, config, out, ranks=ranks, warm=warm)
        case ImageClassifier() as config:
            from regard.tasks.pictures import open_pictures

            return open_pictures(run, config)
        case ImageCaptioner() as config:
            from regard.tasks.captioning import open_captions

            return open_captions(run, config, out, ranks=ranks)
        case PointerNetwork() as config:
            from regard.tasks.pointing import open_points

            return open_points(run, config)
        case Speech() as config:
            from regard.tasks.speech import open_speech

            return open_speech(run, config)
        case GraphClassifier() as config:
            from regard.tasks.graphs import open_graph

            return open_graph(run, config)
        case config if hasattr(config, "open"):  # a kind from outside
            return config.open(run, out, ranks=ranks, signals=signals, warm=warm)
        case _:
            assert_never(run.model)
