"""Runs the cells of a notebook in order, as Jupyter does; prints the output of each as one line of JSON."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any


def shown(value: Any) -> str:
    """Render a value as a notebook does; of a figure, its texts."""
    if type(value).__name__ == "Figure":
        return " | ".join(text.get_text() for text in value.findobj(lambda artist: hasattr(artist, "get_text")))
    html = getattr(value, "_repr_html_", None)
    return str(html()) if html is not None else repr(value)


def main(path: str) -> None:
    notebook = json.loads(Path(path).read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["language"]) == (4, "python")
    scope: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] != "code":
            continue
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), f"cell {number}", "exec"), scope)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), scope)
            sys.stdout.write(json.dumps({"kind": type(value).__name__, "shown": shown(value)}) + "\n")


main(sys.argv[1])
