"""A trained policy in a file of its own: as ONNX, or as arrays that NumPy alone can use."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

import belated
from belated.networks.plain import PlainPolicy
from belated.training.persistence import write_whole

OPSET = 17
"""Of the ONNX files."""
IR_VERSION = 8


def export(policy: PlainPolicy, path: Path) -> None:
    """Write a policy.

    Args:
        policy: from observations, phase included, to actions within their bounds.
        path: ``*.onnx`` or ``*.npz``.

    Raises:
        ValueError: if it is neither.
    """
    kinds = {".onnx": as_onnx, ".npz": as_npz}
    if path.suffix not in kinds:
        raise ValueError(f"A policy is exported to *.onnx or *.npz, not to {path.name}.")
    data = kinds[path.suffix](policy)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)


def as_npz(policy: PlainPolicy) -> bytes:
    """The policy as arrays; docs/deploying.md has the loader."""
    names = ("mean", "scale", "bound", "low", "high", "activation", "squash")
    arrays: dict[str, Any] = {name: getattr(policy, name) for name in names}
    arrays |= {f"weight{n}": weight for n, weight in enumerate(policy.weights)}
    arrays |= {f"bias{n}": bias for n, bias in enumerate(policy.biases)}
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def as_onnx(policy: PlainPolicy) -> bytes:
    """The policy as an ONNX model: observations (batch, D) to actions (batch, A)."""
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise ValueError("ONNX is not installed: pip install 'belated[onnx]'.") from error
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(value: Any) -> str:
        name = f"constant{len(constants)}"
        constants.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def then(kind: str, *inputs: str, output: str | None = None) -> str:
        made = output or f"value{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [made]))
        return made

    x = "observation"
    if np.isfinite(policy.bound):
        x = then("Div", then("Sub", x, constant(policy.mean)), constant(policy.scale))
        x = then("Clip", x, constant(-policy.bound), constant(policy.bound))
    for number, (weight, bias) in enumerate(zip(policy.weights, policy.biases, strict=True)):
        if number > 0:
            x = then("Relu" if policy.activation == "relu" else "Tanh", x)
        x = then("Gemm", x, constant(weight), constant(bias))
    x = then("Tanh", x) if policy.squash == "tanh" else then("Clip", x, constant(-1), constant(1))
    low, width = constant(policy.low), constant((policy.high - policy.low) / 2)
    x = then("Add", then("Mul", then("Add", x, constant(1)), width), low)
    then("Min", then("Max", x, low), constant(policy.high), output="action")
    sizes = len(policy.mean), len(policy.biases[-1])
    observation, action = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size])
        for name, size in zip(("observation", "action"), sizes, strict=True)
    )
    graph = helper.make_graph(nodes, "policy", [observation], [action], constants)
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="belated",
        producer_version=belated.__version__,
    )
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data
