"""A small writer of ONNX graphs: named tensors in, nodes out. No PyTorch needed, so nothing depends on its exporter."""
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 20


class GraphWriter:
    def __init__(self):
        self.nodes, self.initializers = [], {}
        self._count = 0

    def node(self, op, *inputs, outputs=1, name=None, **attributes):
        """Adds one node; constants among the inputs become initialisers. Returns its output name(s)."""
        names = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        self._count += 1
        produced = [name] if name else [f"{op.lower()}_{self._count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, names, produced, **attributes))
        return produced[0] if len(produced) == 1 else produced

    def constant(self, array, name=None):
        array = np.asarray(array)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        if name is None:
            self._count += 1
            name = f"constant_{self._count}"
        self.initializers[name] = numpy_helper.from_array(array, name)
        return name

    def half_constant(self, array):
        """A float32 tensor stored as float16: half the bytes on disk, folded back when the graph is loaded."""
        return self.node("Cast", np.asarray(array, np.float16), to=TensorProto.FLOAT)

    def model(self, inputs, outputs, metadata=None):
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
