"""Saved agents: ``manifest.json``, ``state.safetensors`` and, to go on learning, ``replay/*.npy``.

Loading never runs code: JSON, safetensors and npy files without pickles hold plain values only, and
no environment or function is made from what a file names.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

FORMAT = 3

Arrays = dict[str, npt.NDArray[Any]]


def write(folder: Path, manifest: dict[str, Any], state: Any, replay: Arrays | None) -> None:
    """Write a checkpoint; an older one in the folder is replaced only when the new one is whole.

    Raises:
        ValueError: if the folder holds anything else than a checkpoint.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / "manifest.json").is_file():
        raise ValueError(
            f"{folder} holds something else than a saved agent; choose another folder."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    leaves = {name: np.asarray(leaf) for name, leaf in named_leaves(state).items()}
    safetensors.numpy.save_file(leaves, fresh / "state.safetensors")
    if replay is not None:
        (fresh / "replay").mkdir()
        for name, array in replay.items():
            np.save(fresh / "replay" / f"{name}.npy", array, allow_pickle=False)
    (fresh / "manifest.json").write_text(json.dumps({"format": FORMAT} | manifest, indent=2))
    old = _old(folder)
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def write_json(path: Path, document: Any) -> None:
    """Write a JSON file, whole or not at all."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(json.dumps(document, indent=2) + "\n")
    fresh.replace(path)


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: if it is damaged.
    """
    try:
        return json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is damaged: {error}.") from None


def _old(folder: Path) -> Path:
    """Where the last checkpoint is while the next one takes its place."""
    return folder.with_name(f".{folder.name}.old")


def find(folder: Path) -> Path:
    """Return the checkpoint in a run folder, or the folder itself if it is a saved agent."""
    for candidate in (folder / "checkpoint", folder, _old(folder / "checkpoint"), _old(folder)):
        if (candidate / "manifest.json").is_file():
            return candidate
    raise FileNotFoundError(f"There is no saved agent in {folder}: no manifest.json.")


def exists(folder: Path) -> bool:
    """Whether `find` finds one."""
    try:
        return find(folder).is_dir()
    except FileNotFoundError:
        return False


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read what a checkpoint says of itself."""
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    if manifest.get("format") != FORMAT:
        raise ValueError(
            f"{folder} has the format {manifest.get('format')}; this version reads {FORMAT}."
        )
    return manifest


def read_state(folder: Path, like: Any) -> list[jax.Array]:
    """Read the leaves of a state that has the structure of ``like``."""
    try:
        saved = safetensors.numpy.load_file(folder / "state.safetensors")
    except safetensors.SafetensorError as error:
        raise ValueError(f"{folder / 'state.safetensors'} is damaged: {error}.") from error
    leaves = []
    for name, leaf in named_leaves(like).items():
        if name not in saved or saved[name].shape != leaf.shape:
            raise ValueError(f"{folder} does not fit its own manifest: {name} is missing or odd.")
        leaves.append(jax.device_put(saved[name].astype(leaf.dtype, copy=False)))
    return leaves


def read_replay(folder: Path) -> Arrays | None:
    """Read the replay, if it was saved."""
    files = sorted((folder / "replay").glob("*.npy"))
    return {file.stem: np.load(file, allow_pickle=False) for file in files} or None


def named_leaves(state: Any) -> dict[str, Any]:
    """The leaves of a pytree by their paths."""
    paths, _ = jax.tree_util.tree_flatten_with_path(state)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in paths}
