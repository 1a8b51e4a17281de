#!/usr/bin/env bash
# Point Reach with the paper's learning rate and 1,000 random steps: two methods, four seeds, 80k steps.
# Two runs at a time, each pinned to a core; about twenty minutes on two cores.
set -euo pipefail
source "$(dirname "$0")/../cores.sh"

shared=(--env belated/PointReach-v0 --steps 80000 --set "hidden=[64,64]" --learning-starts 1000
  --eval-every 2500 --eval-episodes 1 --checkpoint-every 80000)
on_core 0 {hc-singleton,sac}@{0,2} &
on_core 1 {hc-singleton,sac}@{1,3} &
wait
