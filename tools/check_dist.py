"""What is in dist/ can be given to others: contents, size, description, and a trial elsewhere.

The trial is a new virtual environment in a folder of its own, with the newest versions of
everything, and the commands that a newcomer tries first.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
LARGEST = 1_000_000  # bytes; the package has neither data nor pictures of its own
RELATIVE = re.compile(r"\]\((?!https?:|#)([^)]*)\)")
PICTURE = re.compile(r"!\[[^\]]*\]\((?!https?:)([^)]*)\)")
COMMANDS = (
    "belated --help",
    "belated train --env belated/PointReach-v0 --steps 300 --learning-starts 100 --out run "
    "--eval-every 150 --eval-episodes 1 --set hidden=[8,8] batch_size=8",
    "belated train --env HalfCheetah-v5 --interval 15:20 --method sac --steps 120 "
    "--learning-starts 100 --out robot --eval-every 120 --eval-episodes 1 --set hidden=[8,8]",
    "belated evaluate run --episodes 1",
    "belated credit run",
    "belated report run --out report.html",
    "belated demo --steps 300 --seeds 1",
)


def the_only(pattern: str) -> Path:
    """The one file in dist/ of this kind."""
    found = sorted((ROOT / "dist").glob(pattern))
    if len(found) != 1:
        sys.exit(f"dist/ should hold one {pattern}, not {len(found)}. Run `make dist`.")
    return found[0]


def wheel_findings(wheel: Path) -> list[str]:
    """What is wrong with the wheel: other files than git knows, or dead links in its text."""
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT / "src", check=True, capture_output=True, text=True
    )
    expected = set(tracked.stdout.splitlines())
    with ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        description = message_from_bytes(archive.read(metadata)).get_payload()
    held = {name for name in names if ".dist-info/" not in name}
    findings = [f"the wheel lacks {name}" for name in sorted(expected - held)]
    findings += [f"the wheel should not hold {name}" for name in sorted(held - expected)]
    links = RELATIVE.findall(str(description))
    return findings + [f"the description leads to {link}, which is not there" for link in links]


def sdist_findings(sdist: Path) -> list[str]:
    """What is wrong with the sdist: other pictures than the README shows."""
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    shown = set(PICTURE.findall((ROOT / "README.md").read_text()))
    pictures = {name for name in held if name.endswith((".png", ".svg", ".gif", ".jpg"))}
    findings = [f"the README shows {name}; the sdist lacks it" for name in sorted(shown - held)]
    return findings + [f"the README does not show {name}" for name in sorted(pictures - shown)]


def trial(wheel: Path) -> None:
    """Install the wheel far from the repository, and use it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", "venv"], cwd=folder, check=True)
        scripts = Path(folder) / "venv" / "bin"
        subprocess.run([scripts / "pip", "install", "--quiet", wheel], cwd=folder, check=True)
        apart = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        for command in COMMANDS:
            print(f"$ {command}", flush=True)
            program, *arguments = command.split()
            done = subprocess.run(
                [scripts / program, *arguments],
                cwd=folder, env=apart, capture_output=True, text=True,
            )  # fmt: skip
            if done.returncode:
                sys.exit(f"{done.stdout}{done.stderr}It ended with {done.returncode}.")


def main() -> None:
    """Look at what is in dist/, then try it."""
    wheel, sdist = the_only("*.whl"), the_only("*.tar.gz")
    findings = wheel_findings(wheel) + sdist_findings(sdist)
    for path in (wheel, sdist):
        size = path.stat().st_size
        print(f"{path.name}: {size:,} bytes")
        findings += [f"{path.name} is larger than {LARGEST:,} bytes"] if size > LARGEST else []
    if findings:
        sys.exit("\n".join(findings))
    trial(wheel)
    print("The wheel works on its own.")


if __name__ == "__main__":
    main()
