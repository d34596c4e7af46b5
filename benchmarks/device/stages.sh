#!/usr/bin/env bash
# The whole check of a card, in stages that can be run apart: benchmarks/device/stages.sh [smoke] [tests] [sanitizer] [bench] ...
#
# OUT (default build/device) receives a log a stage and cache.tgz, the objects compiled so far; with CACHE=cache.tgz a later
# call starts from them. Needs nvcc, a PyTorch with CUDA, and this project's Python dependencies.
set -u
cd "$(dirname "$0")/../.." || exit 1
OUT=${OUT:-build/device}
mkdir -p "$OUT"
export PYTHONUNBUFFERED=1 PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$PWD
export AIT_CACHE_DIR=${AIT_CACHE_DIR:-/tmp/ait_cache}
mkdir -p "$AIT_CACHE_DIR"
[ -n "${CACHE:-}" ] && [ -f "$CACHE" ] && tar xzf "$CACHE" -C "$AIT_CACHE_DIR"
failed=0

stage() { # name, seconds, command...
  local name=$1 limit=$2 begin=$SECONDS
  shift 2
  echo "=== $name: $*"
  timeout "$limit" "$@" >"$OUT/$name.log" 2>&1
  local status=$?
  tail -n "${TAIL:-25}" "$OUT/$name.log"
  echo "=== $name: exit $status, $((SECONDS - begin)) s"
  [ $status -eq 0 ] || failed=1
}

smoke() {
  for graph in ffn bert_layer; do
    python3 -m ait_mlir.tools.cli compile "examples/$graph.mlir" --target cuda -o "/tmp/$graph.ait" || return 1
  done
  python3 -m ait_mlir.tools.cli run /tmp/ffn.ait --input x=random:8x768 --compare reference || return 1
  python3 -m ait_mlir.tools.cli run /tmp/bert_layer.ait --input x=random:2x37x768 --compare reference || return 1
  python3 -m ait_mlir.tools.cli bench /tmp/bert_layer.ait --dim batch=1 --dim seq=128
}
export -f smoke

for name in "${@:-smoke}"; do
  case $name in
    smoke) stage smoke 240 bash -c smoke ;;
    tests) stage tests 420 python3 -m pytest -q -m gpu -n 6 --no-header -p no:cacheprovider ;;
    sanitizer)
      stage sanitizer 400 compute-sanitizer --tool memcheck --error-exitcode 1 \
        python3 examples/bert.py --device cuda --dtype f16 --layers 1 ;;
    kernels) stage kernels 300 python3 benchmarks/device/gemm_native.py --quick --out "$OUT" ;;
    contractions) stage contractions 200 python3 -m pytest -q -m gpu -n 6 --no-header -p no:cacheprovider tests/gpu/test_hopper.py tests/gpu/test_contractions.py ;;
    bench) TAIL=60 stage bench 480 python3 benchmarks/models.py bert --seq 128 --batch 1,32 ${BENCH_ARGS:-} ;;
    launches)
      for batch in 1 32; do
        TAIL=40 stage "launches$batch" 120 python3 -m benchmarks.launches build/benchmarks/bert_f16.ait \
          --dim "batch=$batch" --dim seq=128
      done ;;
    *) echo "unknown stage $name" >&2; failed=1 ;;
  esac
done
tar czf "$OUT/cache.tgz" -C "$AIT_CACHE_DIR" . 2>/dev/null
exit $failed
