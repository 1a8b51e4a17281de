#!/usr/bin/env bash
# HalfCheetah-v5, sum of rewards, intervals of 20 steps: four methods, two seeds, 100k steps.
# Two runs at a time, each pinned to a core; about an hour on two cores.
set -euo pipefail
cd "$(dirname "$0")"
belated=${BELATED:-../../.venv/bin/belated}

lane() {
  local core=$1
  shift
  for run in "$@"; do
    local method=${run%@*} seed=${run#*@}
    taskset -c "$core" "$belated" train --env belated/HalfCheetah-sum-n20-v0 --method "$method" \
      --steps 100000 --seed "$seed" --learning-starts 1000 --checkpoint-every 100000 \
      --out "runs/$method-s$seed" --no-progress
    mkdir -p "$method-s$seed"
    cp "runs/$method-s$seed/config.json" "runs/$method-s$seed/progress.csv" "$method-s$seed/"
  done
}

lane 0 hc-pairwise-1@0 hc-pairwise-1@1 sac@1 &
lane 1 hc-singleton@0 sac@0 hc-singleton@1 oracle@0 oracle@1 &
wait
