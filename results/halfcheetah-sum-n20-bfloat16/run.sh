#!/usr/bin/env bash
# HalfCheetah-v5, sum of rewards, intervals of 20 steps, with bfloat16 products: 100k steps.
# Two runs at a time, each pinned to a core; about three quarters of an hour on two cores.
set -euo pipefail
source "$(dirname "$0")/../lanes.sh"

shared=(--env belated/HalfCheetah-sum-n20-v0 --steps 100000 --learning-starts 1000
  --checkpoint-every 100000 --set precision=bfloat16)
lane 0 hc-singleton@0 hc-singleton@2 sac@0 hc-pairwise-1@0 &
lane 1 hc-singleton@1 hc-singleton@3 sac@1 &
wait
