"""Calibrated pipelines of transformers, with models made here from a configuration."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    PreTrainedTokenizerFast,
    ViTConfig,
    ViTForImageClassification,
    ViTImageProcessor,
    pipeline,
)

import shiftcal as sc
from shiftcal.errors import InputError, NotFittedError
from shiftcal.integrations import CalibratedPipeline

NAMES = ("account", "billing", "delivery")
WORDS = {
    "account": ("password", "login"),
    "billing": ("invoice", "refund"),
    "delivery": ("parcel", "box"),
}


def texts_of(n, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    texts = [" ".join(rng.choice(WORDS[NAMES[j]], 3)) for j in labels]
    return texts, labels


@pytest.fixture(scope="module")
def classify():
    """A text pipeline of a network whose logits know the words, and are twice too large."""
    vocabulary = ["[PAD]", "[UNK]", *(word for words in WORDS.values() for word in words)]
    made = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_input_names=["input_ids", "attention_mask"],
    )
    torch.manual_seed(0)
    config = DistilBertConfig(
        vocab_size=8, dim=16, hidden_dim=16, n_layers=1, n_heads=2, num_labels=3,
        id2label=dict(enumerate(NAMES)), seq_classif_dropout=0.0, dropout=0.0,
    )  # fmt: skip
    model = DistilBertForSequenceClassification(config)
    texts, labels = texts_of(300, seed=1)
    labels[:90] = np.random.default_rng(2).integers(0, 3, 90)  # mistakes, so T is finite
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(30):
        given = tokenizer(texts, padding=True, return_tensors="pt")
        loss = model(**given, labels=torch.from_numpy(labels)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        model.classifier.weight *= 3
        model.classifier.bias *= 3
    return pipeline("text-classification", model=model.eval(), tokenizer=tokenizer)


def noisy_texts():
    texts, labels = texts_of(200, seed=3)
    labels[:60] = np.random.default_rng(4).integers(0, 3, 60)
    return texts, labels


@pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")
def test_texts_get_calibrated_scores_in_the_form_of_the_pipeline(classify):
    texts, labels = noisy_texts()
    made = CalibratedPipeline(classify, sc.SAC())
    assert made.classes == NAMES
    given = classify.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = classify.model(**given).logits.numpy()
    np.testing.assert_allclose(made.logits(texts, batch_size=50), logits, atol=1e-5)
    with pytest.raises(NotFittedError, match="call fit"):
        made(texts)
    names = [NAMES[j] for j in labels]
    made.fit(texts, names, corruption="dropped_words", severities=[1, 5])
    cut = [text.split()[0] for text in texts]
    chosen = made.adapt(cut)
    assert (chosen.n_sets, chosen.n_target) == (3, 200)
    raw, found = classify(cut, top_k=3), made(cut)
    wanted = made.calibration.predict_proba(made.logits(cut))
    for result, row, before in zip(found, wanted, raw, strict=True):
        assert [entry["label"] for entry in result] == [entry["label"] for entry in before]
        assert {e["label"]: e["score"] for e in result} == dict(zip(NAMES, row, strict=True))
    assert made(cut[0], top_k=1) == found[0][:1]
    correct = [result[0]["label"] == name for result, name in zip(found, names, strict=True)]
    before, after = (
        sc.ece(np.array([result[0]["score"] for result in results]), np.array(correct))
        for results in (raw, found)
    )
    assert after < 0.75 * before


@pytest.mark.filterwarnings("ignore::shiftcal.errors.FitWarning")
def test_images_are_corrupted_by_a_function_and_calibrated_by_a_map():
    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        image_size=8, patch_size=4, num_labels=3, id2label=dict(enumerate(NAMES)),
    )  # fmt: skip
    processor = ViTImageProcessor(size={"height": 8, "width": 8})
    model = ViTForImageClassification(config).eval()
    classify = pipeline("image-classification", model=model, image_processor=processor)
    rng = np.random.default_rng(0)
    images = [Image.fromarray(x) for x in rng.integers(0, 256, (30, 8, 8, 3), dtype=np.uint8)]

    def pixelate(images, severity):
        arrays = np.stack([np.asarray(image) for image in images])
        return [Image.fromarray(x) for x in sc.corrupt(arrays, "pixelate", severity=severity)]

    labels = rng.integers(0, 3, 30)
    made = CalibratedPipeline(classify, "sts").fit(images, labels, corruption=pixelate)
    assert made.calibration.selection_ is None
    assert [len(result) for result in made(images[:4], top_k=2)] == [2, 2, 2, 2]
    plain = CalibratedPipeline(classify, "temperature").fit(images, labels, corruption=pixelate)
    wanted = sc.maps.Temperature().fit(made.logits(images), labels)
    assert plain.calibration.temperature_ == wanted.temperature_
    assert sum(entry["score"] for entry in plain(images[0])) == pytest.approx(1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"problem_type": "multi_label_classification"}, "exclude each other"),
        ({"id2label": dict.fromkeys(range(3), "same")}, "with different names"),
        ({"id2label": {0: "one"}}, "two or more classes"),
    ],
)
def test_other_pipelines_raise(classify, changes, message, monkeypatch):
    for name, value in changes.items():
        monkeypatch.setattr(classify.model.config, name, value)
    with pytest.raises(InputError, match=message):
        CalibratedPipeline(classify)


def test_a_map_does_not_adapt(classify):
    with pytest.raises(InputError, match="'temperature' is a map"):
        CalibratedPipeline(classify, "temperature").adapt(["box"])
