# Sourced by the run.sh of each folder here: runs METHOD@SEED one after the other on a core.
# Afterwards FOLDER/METHOD-sSEED holds the settings and the curve; runs/ keeps the rest.
cd "$(dirname "$0")"
belated=${BELATED:-../../.venv/bin/belated}

# on_core CORE METHOD@SEED... with the arguments of `belated train` that all runs share in $shared
on_core() {
  local core=$1
  shift
  for run in "$@"; do
    local name=${run%@*}-s${run#*@}
    taskset -c "$core" "$belated" train --method "${run%@*}" --seed "${run#*@}" "${shared[@]}" \
      --out "runs/$name" --no-progress
    mkdir -p "$name"
    cp "runs/$name/config.json" "runs/$name/progress.csv" "$name/"
  done
}
