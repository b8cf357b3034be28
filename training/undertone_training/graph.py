"""A small writer of ONNX graphs: named tensors in, nodes out. No PyTorch needed, so nothing depends on its exporter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .frontend import Array

OPSET = 20
Shape = Sequence["str | int"]


class GraphWriter:
    """Collects nodes and constants."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self._count = 0

    def node(self, op: str, *inputs: str | Array, name: str | None = None, **attributes: Any) -> str:
        """Add a node with one output and return that output's name; arrays among the inputs become constants."""
        return self._add(op, inputs, [name] if name else [self._name(op)], attributes)[0]

    def nodes_of(self, op: str, *inputs: str | Array, outputs: int, **attributes: Any) -> list[str]:
        """Add a node with several outputs and return their names."""
        return self._add(op, inputs, [self._name(op) for _ in range(outputs)], attributes)

    def _add(
        self, op: str, inputs: Sequence[str | Array], outputs: list[str], attributes: Mapping[str, Any]
    ) -> list[str]:
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        self.nodes.append(helper.make_node(op, names, outputs, **attributes))
        return outputs

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind.lower()}_{self._count}"

    def constant(self, value: Array) -> str:
        """Add a constant tensor and return its name."""
        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = self._name("constant")
        self.initializers[name] = numpy_helper.from_array(array, name)
        return name

    def half_constant(self, array: Array) -> str:
        """Add a float32 tensor stored as float16: half the bytes on disk, folded back when the graph is loaded."""
        return self.node("Cast", np.asarray(array, np.float16), to=TensorProto.FLOAT)

    def model(
        self, inputs: Mapping[str, Shape], outputs: Mapping[str, Shape], metadata: Mapping[str, str] | None = None
    ) -> Any:
        """inputs, outputs: name -> shape (numbers or symbols), all float32."""
        graph = helper.make_graph(
            self.nodes,
            "undertone",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in outputs.items()],
            list(self.initializers.values()),
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
        for key, value in (metadata or {}).items():
            entry = model.metadata_props.add()
            entry.key, entry.value = key, value
        onnx.checker.check_model(model)
        return model
