#!/usr/bin/env bash
# Point Reach with the settings of `belated demo`: two methods, eight seeds, 40k steps.
# Two runs at a time, each pinned to a core; about a quarter of an hour on two cores.
set -euo pipefail
source "$(dirname "$0")/../cores.sh"

shared=(--env belated/PointReach-v0 --steps 40000 --set "hidden=[64,64]" learning_rate=0.001
  --eval-every 2500 --eval-episodes 1 --checkpoint-every 40000)
on_core 0 {hc-singleton,sac}@{0,2,4,6} &
on_core 1 {hc-singleton,sac}@{1,3,5,7} &
wait
