"""Load saved agents that were tampered with, under the eyes of an audit hook.

python fuzz.py FOLDER COUNT SEED: prints what happened as JSON. FOLDER holds a good one.
"""

from __future__ import annotations

import copy
import hashlib
import json
import random
import resource
import shutil
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from small_agents import delayed

from belated import Agent, CheckpointError

JUNK: list[Any] = [
    None, True, -1, 0, 1, 3, 2**31, 2**63, 10**18, 10**30, -(10**30), 1e308, float("nan"),
    float("inf"), "", "../../etc/passwd", "os.system", "/etc/passwd", "state.0.safetensors", [], {},
    [[]] * 3, [10**6, 10**6], [2**40], {"type": "os.system"}, {"type": "SAC"}, "\x00", "é" * 50,
]  # fmt: skip
FORBIDDEN = (
    "exec", "import", "os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.Popen",
    "pickle.find_class", "socket.connect", "socket.bind", "shutil.rmtree", "os.remove",
    "os.rename", "ctypes.dlopen", "marshal.loads", "code.__new__",
)  # fmt: skip

seen: list[str] = []
watching = False


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note what loading must never do."""
    if not watching:
        return
    writes = event == "open" and any(sign in str(arguments[1] or "") for sign in "wax+")
    if writes or event.startswith(FORBIDDEN):
        seen.append(f"{event} {arguments!r:.200}")


def tampered(folder: Path, rng: random.Random) -> str:
    """Spoil a saved agent, and say how."""
    how = rng.choice([damage_bytes, cut, spoil_manifest, spoil_manifest, forge, remove, swap])
    return f"{how.__name__}: {how(folder, rng)}"


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def damage_bytes(folder: Path, rng: random.Random) -> str:
    """Change some bytes of a file."""
    path = rng.choice(files(folder))
    data = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 5, 200])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(data)
    return path.name


def cut(folder: Path, rng: random.Random) -> str:
    """Cut a file off, or make it longer, perhaps by a hole of a terabyte."""
    path = rng.choice(files(folder))
    size = path.stat().st_size
    with path.open("r+b") as file:
        new = rng.choice([0, 1, size // 2, size - 1, size + 1, 2 * size, 2**40])
        file.truncate(new)
    return f"{path.name} to {new}"


def remove(folder: Path, rng: random.Random) -> str:
    """Delete a file, or put a folder or a link in its place."""
    path = rng.choice(files(folder))
    path.unlink()
    kind = rng.choice(["nothing", "folder", "link", "pickle"])
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("/etc/hostname")
    elif kind == "pickle":
        path.write_bytes(f"cos\nsystem\n(S'touch {trace(folder)}'\ntR.".encode())
    return f"{path.name} by {kind}"


def trace(folder: Path) -> Path:
    """What would be there if a pickle had been read."""
    return folder.with_name("was-here")


def swap(folder: Path, rng: random.Random) -> str:
    """Give a file the content of another."""
    one, two = rng.sample(files(folder), 2)
    one.write_bytes(two.read_bytes())
    return f"{one.name} by {two.name}"


def spoil_manifest(folder: Path, rng: random.Random) -> str:
    """Replace, delete or double a value somewhere in the manifest."""
    path = folder / "manifest.json"
    document = json.loads(path.read_text())
    places = list(places_of(document))
    changes = []
    for _ in range(rng.choice([1, 1, 1, 2, 6])):
        holder, key = rng.choice(places)
        changes.append(str(key))
        if isinstance(holder, dict) and rng.random() < 0.15:
            holder.pop(key, None)
        elif isinstance(holder, list) and rng.random() < 0.15:
            holder.append(copy.deepcopy(rng.choice(JUNK)))
        elif isinstance(holder, dict) or key < len(holder):
            holder[key] = copy.deepcopy(rng.choice(JUNK))
    path.write_text(json.dumps(document))
    return ", ".join(changes)


def places_of(value: Any) -> Any:
    """Every place of a document where something could be put."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], (dict, list)) and value[key]:
            yield from places_of(value[key])


def forge(folder: Path, rng: random.Random) -> str:
    """Change a file and write a checksum that fits, as somebody with bad intentions would."""
    manifest = folder / "manifest.json"
    document = json.loads(manifest.read_text())
    name: str = rng.choice(sorted(document["files"]))
    data = bytearray((folder / name).read_bytes())
    where = 8 if name.endswith(".safetensors") and rng.random() < 0.7 else 0
    reach = min(len(data), 2_000) if where else len(data)
    if rng.random() < 0.2:
        data[:8] = rng.choice([2**62, 2**40, 0, 1, len(data)]).to_bytes(8, "little")
    for _ in range(rng.choice([1, 3, 20])):
        data[rng.randrange(where, reach)] = rng.randrange(256)
    (folder / name).write_bytes(data)
    document["files"][name] = {
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    manifest.write_text(json.dumps(document))
    return name


def most_memory() -> float:
    """The most that this process ever held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(folder: Path, count: int, seed: int) -> None:
    """Tamper and load, again and again."""
    global watching
    env = delayed()
    Agent.load(folder, env)  # whatever is imported and made once
    failures: list[str] = []
    refused = accepted = 0
    sys.addaudithook(watch)
    start = most_memory()
    hungriest, most = seed, 0.0
    for number in range(count):
        before = most_memory()
        rng = random.Random(seed + number)
        with tempfile.TemporaryDirectory() as place:
            spoiled = Path(place) / "agent"
            shutil.copytree(folder, spoiled)
            how = tampered(spoiled, rng)
            watching = True
            try:
                Agent.load(spoiled, env)
                accepted += 1
            except (CheckpointError, FileNotFoundError):
                refused += 1
            except ValueError as error:  # it has become one of another environment
                watching = False
                if "another kind of environment" in str(error):
                    refused += 1
                else:
                    failures.append(f"seed {seed + number}, {how}: {error}")
            except BaseException:
                watching = False
                failures.append(f"seed {seed + number}, {how}: {traceback.format_exc()[-600:]}")
            finally:
                watching = False
            if trace(spoiled).exists():
                failures.append(f"seed {seed + number}, {how}: a pickle was run")
        if most_memory() - before > most:
            hungriest, most = seed + number, most_memory() - before
    print(
        json.dumps(
            {
                "accepted": accepted,
                "refused": refused,
                "failures": failures,
                "forbidden": sorted(set(seen)),
                "megabytes": most_memory() - start,
                "hungriest": hungriest,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
