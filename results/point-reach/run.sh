#!/usr/bin/env bash
# Point Reach with the settings of `belated demo`: two methods, two seeds, 40k steps.
# Two runs at a time, each pinned to a core; about five minutes on two cores.
set -euo pipefail
source "$(dirname "$0")/../lanes.sh"

shared=(--env belated/PointReach-v0 --steps 40000 --set "hidden=[64,64]" learning_rate=0.001
  --eval-every 2500 --eval-episodes 1 --checkpoint-every 40000)
lane 0 hc-singleton@0 sac@0 &
lane 1 hc-singleton@1 sac@1 &
wait
