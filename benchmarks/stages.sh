#!/usr/bin/env bash
# The whole check of a card, in stages that can be run apart and taken up again:
#
#   benchmarks/stages.sh [STAGE ...]        by default all, in the order of STAGES below
#
# One more stage, timings, measures what the package brings along: it writes ait_mlir/timings/h200.json, and OUT/h200.json. Those of SINGLE run
# only where they are named.
# Two cards of one machine work at once on two seeds, or on one, whose networks they then share (the caches, too, are shared):
#
#   for i in 0 1; do CUDA_VISIBLE_DEVICES=$i SEED=$((9300 + i)) benchmarks/stages.sh unseen regret & done; wait
#
# OUT (default build/stages) receives a log a stage. A stage that has ended well (OUT/STAGE.done) is not run again, so the same command
# goes on where a machine went away; FORCE=1 runs all that are named. Compiled objects and times are kept in AIT_CACHE_DIR (default
# OUT/cache); with PACK=1 they go to OUT/cache.tgz at the end, from which a call with CACHE=FILE starts on another machine.
# Rows of measurements go to OUT/results, files as in benchmarks/results, from which `python -m benchmarks.page` makes docs/results.md: copy
# them there to publish them.
# Needs nvcc, compute-sanitizer, a PyTorch with CUDA, and this project's Python dependencies with its extra `test`.
set -u
cd "$(dirname "$0")/.." || exit 1
OUT=$(realpath -m "${OUT:-build/stages}")
export PYTHONUNBUFFERED=1 PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$PWD
export AIT_CACHE_DIR=${AIT_CACHE_DIR:-$OUT/cache}
mkdir -p "$OUT" "$AIT_CACHE_DIR"
[ -n "${CACHE:-}" ] && tar xzf "$CACHE" -C "$AIT_CACHE_DIR"
CARD=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | grep -oiE -m 1 "[a-z]+[0-9]+" | head -n 1 | tr "[:upper:]" "[:lower:]")
CARD=${CARD:-card} # h200 of NVIDIA H200, h100 of NVIDIA H100 80GB HBM3
mkdir -p "$OUT/results"
cp -n benchmarks/results/*-"$CARD".json "$OUT/results" 2>/dev/null
JOBS=${JOBS:-$(($(nproc) / 2 + 1))}
STAGES="tests memcheck initcheck compile models1 kernels1 launches dynamic contractions models2 kernels2"
SINGLE="networks unseen regret graph_api streams runtime generate" # by name alone; NETWORKS, SEED and COUNT say which networks
failed=0

stage() { # seconds, command...
  local limit=$1 begin=$SECONDS
  shift
  echo "=== $key: $*"
  timeout "$limit" "$@" >"$OUT/$key.log" 2>&1
  local status=$?
  tail -n "${TAIL:-6}" "$OUT/$key.log"
  echo "=== $key: exit $status, $((SECONDS - begin)) s"
  if [ $status -eq 0 ]; then touch "$OUT/$key.done"; else failed=1; fi
}

# A sanitizer over the tests whose operands come from the host, so that initcheck knows what was written: one process a file and type, the
# long ones first, but for tensors of more than 2^31 elements, which take long and come last.
sanitize() { # tool
  local parts=() file types
  for file in specs contractions; do
    for types in "f16 and not bf16" bf16 "f32 and not f16" "not f16 and not f32"; do parts+=("$file ($types) and not 2_to_31"); done
  done
  for file in hopper attention stream; do parts+=("$file not bf16" "$file bf16"); done
  for file in cumulative reduce_split; do parts+=("$file not 2_to_31"); done
  parts+=("program not follows_pytorch") # which counts replays, so PyTorch's allocator must give the same addresses again
  parts+=("kernels not 2_to_31")
  parts+=("kernels 2_to_31")
  mkdir -p "$OUT/$1"
  printf '%s\n' "${parts[@]}" | TOOL=$1 xargs -P "$JOBS" -d '\n' -n 1 bash -c sanitize_part
}
sanitize_part() { # "FILE TYPES" in $0
  local file=${0%% *} types=${0#* } log
  log="$OUT/$TOOL/${0//[^a-z0-9]/_}.log"
  compute-sanitizer --tool "$TOOL" --error-exitcode 86 --print-limit 20 \
    python3 -m pytest -q -m gpu --no-header -p no:cacheprovider "tests/gpu/test_$file.py" -k "$types" >"$log" 2>&1
  local status=$?
  echo "$0: exit $status: $(grep -E "passed|failed|no tests ran|deselected" "$log" | tail -n 1); $(grep "ERROR SUMMARY" "$log")"
  [ $status -eq 0 ] || [ $status -eq 5 ] # no test of that type
}
export -f sanitize sanitize_part
save() { echo --save "$OUT/results/$1-$CARD.json"; }
export OUT JOBS CARD

launches() {
  for run in "bert_f16 --dim batch=1 --dim seq=128" "bert_f16 --dim batch=32 --dim seq=128" "vit_f16 --dim batch=32"; do
    set -- $run
    python3 -m benchmarks.launches "build/benchmarks/$1.ait" "${@:2}" --save "$OUT/results/launches-$CARD.json" || return 1
  done
}
compile() { # cold with measuring, from those caches, and cold with the times of the package
  for how in "cold --measure" "cold --measure" "shipped"; do
    set -- $how
    AIT_CACHE_DIR=$AIT_CACHE_DIR/compile_$1 python3 benchmarks/models.py bert --compile-only "${@:2}" || return 1
  done
  rm -r "$AIT_CACHE_DIR"/compile_*
}
timings() {
  python3 -m benchmarks.timings --build && python3 -m benchmarks.timings -o ait_mlir/timings/h200.json && cp ait_mlir/timings/h200.json "$OUT"
}
export -f launches compile timings

for name in ${*:-$STAGES}; do
  case $name in unseen | regret) key=${name}_${SEED:?a seed that nobody has used} ;; *) key=$name ;; esac
  [ -e "$OUT/$key.done" ] && [ -z "${FORCE:-}" ] && echo "=== $key: done before" && continue
  case $name in
    tests) stage 420 python3 -m pytest -v -m gpu -n "$JOBS" --no-header -p no:cacheprovider tests ;; # -v: the log has the names even where time ran out
    memcheck | initcheck) TAIL=16 stage 540 bash -c "sanitize $name" ;;
    timings) stage 580 bash -c timings ;;
    compile) rm -rf "$AIT_CACHE_DIR"/compile_* && stage 200 bash -c compile ;;
    models[12]) TAIL=30 stage 300 python3 benchmarks/models.py --budget 0.25 ${MODELS:-} $(save models) ;;
    kernels[12]) TAIL=90 stage 200 python3 -m benchmarks.kernels $(save kernels) ;;
    launches) TAIL=60 stage 120 bash -c launches ;;
    dynamic) TAIL=10 stage 200 python3 -m benchmarks.dynamic bert --seq 128 --budget 0.25 $(save dynamic) ;;
    contractions) TAIL=50 stage 300 python3 -m benchmarks.contractions f16 --measure $(save contractions) ;;
    networks) TAIL=12 stage 400 python3 benchmarks/networks.py ${NETWORKS:-} --budget 0.3 --tuning 15 $(save networks) ;;
    unseen)
      # Two processes share the card and the file of rows, so a card that goes away costs two networks.
      TAIL=30 stage 590 python3 -m benchmarks.unseen --seed "$SEED" --count "${COUNT:-20}" --peers eager,compile --tuning 12 --budget 0.2 \
        --jobs 2 --rows "$OUT/unseen_$SEED.jsonl" --seconds "${LIMIT:-500}" $(save unseen)
      ;;
    regret) # with the problems of other seeds in OUT
      TAIL=60 stage 400 python3 -m benchmarks.regret $(ls "$OUT"/regret_*.jsonl 2>/dev/null | grep -v "regret_$SEED.jsonl") --seed "$SEED" \
        --count 100 --seconds "${LIMIT:-240}" -o "$OUT/regret_$SEED.jsonl"
      ;;
    graph_api) TAIL=45 stage 200 python3 -m benchmarks.graph_api --limit 150 $(save graph_api) ;;
    streams) TAIL=12 stage 120 python3 -m benchmarks.streams --budget 0.3 --seconds 80 $(save streams) ;;
    runtime) TAIL=30 stage 120 python3 -m benchmarks.runtime --target cuda $(save runtime) ;;
    generate) TAIL=12 stage 120 python3 -m benchmarks.generate --device cuda --layers 2 --steps 16 $(save generate) ;;
    *) echo "unknown stage $name; known: timings $STAGES $SINGLE" >&2; failed=1 ;;
  esac
done
[ -n "${PACK:-}" ] && tar czf "$OUT/cache.tgz" -C "$AIT_CACHE_DIR" .
exit $failed
