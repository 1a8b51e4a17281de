#!/usr/bin/env bash
# HalfCheetah-v5, sum of rewards, intervals of 20 steps, with bfloat16 products: 100k steps.
# Two runs at a time, each pinned to a core; about an hour and a quarter on two cores.
set -euo pipefail
source "$(dirname "$0")/../cores.sh"

shared=(--env belated/HalfCheetah-sum-n20-v0 --steps 100000 --learning-starts 1000
  --checkpoint-every 100000 --set precision=bfloat16)
on_core 0 hc-singleton@{0,2,4,6} sac@0 hc-pairwise-1@0 &
on_core 1 hc-singleton@{1,3,5,7} sac@1 &
wait
