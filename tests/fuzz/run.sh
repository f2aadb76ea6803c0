#!/bin/bash
# run.sh - fuzz nicpin's parsers, guided by coverage.
#
#   run.sh [SECONDS [TARGET...]]      each target for so long (default 60), all of them by default
#   run.sh -l                         list the targets
#
# Runs on stable Rust: libFuzzer comes with the crate libfuzzer-sys, and needs a C++ compiler (g++ or clang++). What
# was learned stays in $NICPIN_FUZZ_CORPUS (default target/fuzz/corpus below the project), and makes the next run start
# further on. Input that breaks a promise is kept in target/fuzz/found; put it into found/TARGET/ here once it is
# mended, and `cargo test` keeps it so. Each target's last line has its executions, the places in the code that
# they reached (edges), and what was found. The exit status is 0 when nothing was found.
set -eu
FUZZ=$(cd "$(dirname "$(readlink -f "$0")")" && pwd)
TARGET=${CARGO_TARGET_DIR:-$FUZZ/../../target}/fuzz
CORPUS=${NICPIN_FUZZ_CORPUS:-$TARGET/corpus}
TARGETS=$(sed -n 's/^ *name: "\([a-z]*\)",$/\1/p' "$FUZZ/targets.rs")
[ -n "$TARGETS" ] || { echo "run.sh: no target is found in $FUZZ/targets.rs" >&2; exit 1; }
case ${1:-} in
  -l) echo "$TARGETS"; exit;;
  -h|--help) sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p}' "$0"; exit;;
esac
SECONDS_EACH=${1:-60}
[ $# -gt 0 ] && shift
[ $# -gt 0 ] || { read -ra all <<<"${TARGETS//$'\n'/ }"; set -- "${all[@]}"; }

# The counters that libFuzzer reads, put in by LLVM: no flag of these is for nightly only.
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
# Build scripts and macros are built without the counters, because of --target.
HOST=$(rustc -vV | sed -n 's/^host: //p')
# With the project's own versions of all crates that both have
cp "$FUZZ/../../Cargo.lock" "$FUZZ/Cargo.lock"
cargo build --manifest-path "$FUZZ/Cargo.toml" --release --quiet --target "$HOST" --target-dir "$TARGET"

# The limit of memory counts a machine four times: as made, as an archive, compressed, and as nicpin reads it. The limit
# of time is for all commands on a machine; hostile.rs has one for each.
status=0
for target in "$@"; do
  corpus=$CORPUS/$target found=$TARGET/found/$target log=$TARGET/$target.log
  mkdir -p "$corpus" "$found"
  export NICPIN_FUZZ_TARGET=$target
  NICPIN_FUZZ_SEEDS=$corpus "$TARGET/$HOST/release/nicpin-fuzz" 2>/dev/null
  verdict=clean
  "$TARGET/$HOST/release/nicpin-fuzz" -max_total_time="$SECONDS_EACH" -timeout=300 -len_control=0 -max_len=65536 -rss_limit_mb=768 \
    -artifact_prefix="$found/" -print_final_stats=1 "$corpus" >"$log" 2>&1 || { verdict="FOUND, see $log"; status=1; }
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
  printf '%-12s %10s executions  %6s edges  %5s in the corpus  %s\n' "$target" "${executions:-?}" "${edges:-?}" \
    "$(find "$corpus" -type f | wc -l)" "$verdict"
done
exit $status
