"""Policies in files, run as somebody would who has nothing but them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def onnx_actions(path: Path, rows: Any) -> Any:
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = onnx.load(path)
    assert model.opset_import[0].version == 17
    (actions,) = ReferenceEvaluator(model).run(None, {"observation": rows})
    return actions


def npz_actions(path: Path, rows: Any) -> Any:
    return runpy.run_path(str(ROOT / "examples" / "run_policy.py"))["Policy"](str(path))(rows)
