"""A trained policy in a file of its own: as ONNX, or as arrays that NumPy alone can use."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

import belated
from belated.experience.choices import decode, joint_codes
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
    if policy.choices:
        arrays["choices"] = np.array(policy.choices)
        arrays["low"] = np.array(policy.low, np.int64)
        arrays |= {"codes": joint_codes(policy.choices)} if policy.joint else {}
        arrays |= {} if policy.mask is None else {"mask": policy.mask}
    arrays |= {f"weight{n}": weight for n, weight in enumerate(policy.weights)}
    arrays |= {f"bias{n}": bias for n, bias in enumerate(policy.biases)}
    for name, array in arrays.items():
        if np.asarray(array).dtype == np.float64:
            arrays[name] = np.asarray(array, np.float32)  # as they were learned
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def as_onnx(policy: PlainPolicy) -> bytes:
    """The policy as an ONNX model: observations (batch, D) to actions (batch, A).

    Discrete actions are integers, (batch, components). The numbers are stored in float32 and
    computed with in float64, as `PlainPolicy` does.
    """
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise ValueError("ONNX is not installed: pip install 'belated[onnx]'.") from error
    nodes: list[Any] = []
    constants: list[Any] = []

    def then(kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        made = output or f"value{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [made], **attributes))
        return made

    def constant(value: Any) -> str:
        name = f"constant{len(constants)}"
        constants.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return then("Cast", name, to=TensorProto.DOUBLE)

    def whole(value: Any) -> str:
        name = f"constant{len(constants)}"
        constants.append(numpy_helper.from_array(np.asarray(value, np.int64), name))
        return name

    x = then("Cast", "observation", to=TensorProto.DOUBLE)
    if np.isfinite(policy.bound):
        x = then("Div", then("Sub", x, constant(policy.mean)), constant(policy.scale))
        x = then("Clip", x, constant(-policy.bound), constant(policy.bound))
    for number, (weight, bias) in enumerate(zip(policy.weights, policy.biases, strict=True)):
        if number > 0:
            x = then("Relu" if policy.activation == "relu" else "Tanh", x)
        x = then("Gemm", x, constant(weight), constant(bias))
    if policy.choices:
        _choose(policy, x, then, constant, whole)
    else:
        then("Cast", _scale(policy, x, then, constant), output="action", to=TensorProto.FLOAT)
    kinds = TensorProto.FLOAT, TensorProto.INT64 if policy.choices else TensorProto.FLOAT
    sizes = len(policy.mean), len(policy.choices) or len(policy.biases[-1])
    observation, action = (
        helper.make_tensor_value_info(name, kind, ["batch", size])
        for name, kind, size in zip(("observation", "action"), kinds, sizes, strict=True)
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


def _scale(policy: PlainPolicy, x: str, then: Any, constant: Any) -> str:
    """Add what `PlainPolicy` does with outputs that become actions between two bounds."""
    clipped = policy.squash == "clip"
    x = then("Clip", x, constant(-1), constant(1)) if clipped else then("Tanh", x)
    low, high = constant(policy.low), constant(policy.high)
    width = then("Div", then("Sub", high, low), constant(2))
    x = then("Add", then("Mul", then("Add", x, constant(1)), width), low)
    bounded: str = then("Min", then("Max", x, low), high)
    return bounded


def _choose(policy: PlainPolicy, scores: str, then: Any, constant: Any, whole: Any) -> None:
    """Add what `PlainPolicy` does with the scores of options, or of joint actions."""
    options = sum(policy.choices)
    codes = joint_codes(policy.choices) if policy.joint else None
    if policy.mask is not None:
        ends = whole([policy.mask]), whole([policy.mask + options])
        mask = then("Cast", then("Slice", "observation", *ends, whole([1])), to=_DOUBLE)
        if codes is not None:  # all components of a joint action must be allowed
            agreeing = then("MatMul", mask, constant(codes.T))
            mask = then("Sub", agreeing, constant(len(policy.choices) - 1))
        scores = then("Where", then("Greater", mask, constant(0.5)), scores, constant(-1e30))
    if codes is not None:
        numbers = then("ArgMax", scores, axis=1, keepdims=0)
        picks = then("Gather", whole(decode(codes, policy.choices)), numbers)
    else:
        ends = np.cumsum(policy.choices).tolist()
        parts = [
            then("Slice", scores, whole([end - size]), whole([end]), whole([1]))
            for end, size in zip(ends, policy.choices, strict=True)
        ]
        best = [then("ArgMax", part, axis=1, keepdims=1) for part in parts]
        picks = then("Concat", *best, axis=1)
    then("Add", picks, whole(policy.low), output="action")


_DOUBLE = 11
"""ONNX's number for float64."""
