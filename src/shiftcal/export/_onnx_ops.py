"""Nodes of an ONNX graph, in the forms that its version of the operators has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shiftcal._optional import require

# Operators that are needed in every calibration came with this version.
OLDEST_OPSET = 9


class Ops:
    """Nodes in the order they are added; values are known by their names.

    Constants are nodes too: initializers of old files have to be inputs as well.

    Args:
        opset: Version of the operators of the graph.
        k: Number of classes.
        name: Gives a name that nothing in the graph has, from a word.
        dtype: In which the calibration computes.

    Attributes:
        nodes: What was added.
    """

    def __init__(
        self, opset: int, k: int, *, name: Callable[[str], str], dtype: type[np.floating[Any]]
    ) -> None:
        self.opset = opset
        self.k = k
        self.dtype = dtype
        self.nodes: list[Any] = []
        self._name = name
        self._onnx = require("onnx", extra="onnx", needed_by="export to ONNX")
        self._kept: dict[tuple[str, bytes], str] = {}

    def add(self, kind: str, *inputs: str, outputs: int = 1, **settings: Any) -> str:
        """Add a node and give the name of its first output."""
        names = [self._name(kind.lower()) for _ in range(outputs)]
        node = self._onnx.helper.make_node(kind, list(inputs), names, self._name(kind), **settings)
        self.nodes.append(node)
        return names[0]

    def constant(self, value: Any, dtype: Any = None) -> str:
        """The name of a constant, of the dtype of the calibration unless told."""
        array = np.asarray(value, dtype=self.dtype if dtype is None else dtype)
        key = (f"{array.dtype.str}{array.shape}", array.tobytes())
        if key not in self._kept:
            tensor = self._onnx.numpy_helper.from_array(array)
            self._kept[key] = self.add("Constant", value=tensor)
        return self._kept[key]

    def cast(self, x: str, dtype: Any) -> str:
        """``x`` in another dtype."""
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", x, to=kind)

    def reduce(self, kind: str, x: str, *, keepdims: bool = True) -> str:
        """``ReduceMax``, ``ReduceSum`` or ``ReduceMean`` over the classes."""
        since = 13 if kind == "ReduceSum" else 18
        if self.opset >= since:
            return self.add(kind, x, self.constant([1], np.int64), keepdims=int(keepdims))
        return self.add(kind, x, axes=[1], keepdims=int(keepdims))

    def softmax(self, x: str) -> str:
        """Over the classes of ``(n, k)``, for which all versions mean the same."""
        return self.add("Softmax", x, axis=1)

    def rounded(self, x: str) -> str:
        """The nearest whole number of what is not negative."""
        if self.opset >= 11:
            return self.add("Round", x)
        return self.add("Floor", self.add("Add", x, self.constant(0.5)))

    def largest(self, x: str, count: int) -> str:
        """The so many largest of every row, falling."""
        if self.opset >= 10:
            return self.add("TopK", x, self.constant([count], np.int64), outputs=2, axis=1)
        return self.add("TopK", x, outputs=2, axis=1, k=count)

    def sums_from_the_end(self, x: str, width: int) -> str:
        """For every place of a row the sum from there to its end."""
        if self.opset >= 11:
            return self.add("CumSum", x, self.constant(1, np.int64), reverse=1)
        places = np.arange(width)
        down, along = self.constant(places[:, None], np.int64), self.constant(places, np.int64)
        below = self.add("Not", self.add("Less", down, along))
        return self.add("MatMul", x, self.cast(below, self.dtype))
