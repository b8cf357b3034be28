"""The licence in the catalogue follows from the corpora."""

from conftest import ROOT

from undertone_training import config
from undertone_training.catalogue import licence
from undertone_training.config import Corpus


def corpus(name, licence, attribution="", commercial_use=False):
    return Corpus(name, "csv", ".", licence, attribution, commercial_use)


def test_only_the_authors_of_the_corpora_are_named():
    text = licence([corpus("mine", "CC0", commercial_use=True)])
    assert text == "commercial use allowed, with attribution of mine (CC0)"


def test_a_corpus_without_commercial_use_makes_the_weights_non_commercial_and_is_named():
    used = [corpus("a", "CC0", commercial_use=True), corpus("b", "CC BY-NC 4.0", "Bell (2020)")]
    assert licence(used) == "non-commercial use, under the terms of Bell (see the model card)"


def test_the_shipped_recipe_names_the_corpora_of_both_weights():
    recipe = config.read(ROOT / "training/recipe.toml")
    open_terms = licence(recipe.used_by("open"), recipe.licences["open"])
    assert open_terms.startswith("Apache-2.0, with attribution of CREMA-D")
    assert "EmoGator" in open_terms
    research = licence(recipe.used_by("research"), recipe.licences["research"])
    assert research.startswith("non-commercial research use")
    assert all(name in research for name in ("RAVDESS", "nEMO", "ASED", "ESD", "MELD", "EMOVO"))
