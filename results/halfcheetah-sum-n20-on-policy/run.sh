#!/usr/bin/env bash
# HalfCheetah-v5, sum of rewards, intervals of 20 steps: PPO and what is built on it, two seeds,
# 500k steps. Two runs at a time, each pinned to a core; about a quarter of an hour on two cores.
set -euo pipefail
source "$(dirname "$0")/../cores.sh"

shared=(--env belated/HalfCheetah-sum-n20-v0 --steps 500000 --eval-every 25000
  --checkpoint-every 500000)
on_core 0 ppo@0 rudder@0 lirpg@0 &
on_core 1 ppo@1 rudder@1 lirpg@1 &
wait
