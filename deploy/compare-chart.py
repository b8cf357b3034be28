"""Compares the rendered chart with the manifests it is made of: the same objects, and differences only where values go."""

import sys
from pathlib import Path

import yaml

#: Set from values, so they may differ.
FROM_VALUES = {"image", "annotations"}


def objects(text: str) -> dict[str, object]:
    found = (document for document in yaml.safe_load_all(text) if document)
    return {f"{one['kind']}/{one['metadata']['name']}": without_values(one) for one in found}


def without_values(value: object) -> object:
    if isinstance(value, dict):
        return {key: without_values(inner) for key, inner in value.items() if key not in FROM_VALUES}
    if isinstance(value, list):
        return [without_values(inner) for inner in value]
    return value


chart = objects(Path(sys.argv[1]).read_text())
folder = Path(sys.argv[2])
listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
manifests = objects("\n---\n".join((folder / name).read_text() for name in [*listed, "migration.yaml"]))
for name in sorted(chart.keys() ^ manifests.keys()):
    print(f"only in {'the chart' if name in chart else 'the manifests'}: {name}")
for name in sorted(chart.keys() & manifests.keys()):
    if chart[name] != manifests[name]:
        print(f"differs: {name}")
sys.exit(chart != manifests)
