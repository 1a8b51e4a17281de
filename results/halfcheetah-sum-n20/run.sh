#!/usr/bin/env bash
# HalfCheetah-v5, sum of rewards, intervals of 20 steps: six methods, two or eight seeds, 100k.
# Two runs at a time, each pinned to a core; about two and a quarter hours on two cores.
set -euo pipefail
source "$(dirname "$0")/../cores.sh"

shared=(--env belated/HalfCheetah-sum-n20-v0 --steps 100000 --learning-starts 1000
  --checkpoint-every 100000)
on_core 0 hc-pairwise-1@0 hc-pairwise-1@1 sac@1 rrd@0 ircr@0 hc-singleton@{2,3,5,7} &
on_core 1 hc-singleton@0 sac@0 hc-singleton@1 oracle@0 oracle@1 rrd@1 ircr@1 hc-singleton@{4,6} &
wait
