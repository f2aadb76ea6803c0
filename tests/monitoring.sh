#!/bin/bash
# tests/monitoring.sh - what Prometheus and node_exporter make of the metrics of `nicpin check`: promtool on metrics,
# rules and their tests, node_exporter's textfile collector on loopback, and a reader that must never see half a file.
# Each check is shown to fail on a planted mistake. Needs python3, promtool and node_exporter (Debian: prometheus,
# prometheus-node-exporter). NICPIN is the binary.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
nicpin=$(readlink -f "${NICPIN:-target/debug/nicpin}")
for tool in promtool prometheus-node-exporter; do
  if ! command -v "$tool" >/dev/null; then
    echo "skipped: $tool is missing (Debian: prometheus, prometheus-node-exporter)" >&2
    exit 77
  fi
done
dir=$(mktemp -d)
exporter=
finish() {
  [ -z "$exporter" ] || kill "$exporter" 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# refuses WHAT COMMAND...: the command has to fail
refuses() {
  local what=$1
  shift
  if "$@" >"$dir/out" 2>&1; then
    cat "$dir/out" >&2
    fail "$what was accepted"
  fi
  echo "refused, as it should be: $what"
}

# metrics ROOT [OPTION...]: of a machine that may differ from its plan
metrics() {
  local root=$1 status=0
  shift
  "$nicpin" check --format prometheus --root "$root" "$@" || status=$?
  [ "$status" = 0 ] || [ "$status" = 2 ] || fail "nicpin check --root $root: exit code $status"
}

echo "== promtool check metrics"
for machine in fixtures/*/; do
  [ -d "$machine/sys" ] || continue
  metrics "$machine" >"$dir/machine.prom"
  promtool check metrics <"$dir/machine.prom" || fail "promtool check metrics: $machine"
done
cp -a fixtures/two-node "$dir/tree"
"$nicpin" apply -q --root "$dir/tree"
metrics "$dir/tree" >"$dir/planned.prom"
promtool check metrics <"$dir/planned.prom"
check_metrics() { promtool check metrics <"$1"; }
sed 's/nicpin_as_planned gauge/nicpin_as_planned counter/' "$dir/planned.prom" >"$dir/counter.prom"
refuses "a counter without _total" check_metrics "$dir/counter.prom"
sed 's/reason="not-applied"/reason="not-\\applied"/' "$dir/planned.prom" >"$dir/escape.prom"
refuses "a label with a bad escape" check_metrics "$dir/escape.prom"

echo "== promtool check rules, test rules"
cp dist/prometheus/*.yml "$dir"
promtool check rules "$dir/nicpin.rules.yml"
(cd "$dir" && promtool test rules nicpin.rules.test.yml)
mkdir "$dir/wrong"
cp dist/prometheus/nicpin.rules.test.yml "$dir/wrong"
sed 's/nicpin_interface_state >= 7/nicpin_interface_state >>= 7/' dist/prometheus/nicpin.rules.yml >"$dir/wrong/nicpin.rules.yml"
refuses "a rule with a syntax error" promtool check rules "$dir/wrong/nicpin.rules.yml"
sed 's/nicpin_interface_state >= 7/nicpin_interface_state >= 11/' dist/prometheus/nicpin.rules.yml >"$dir/wrong/nicpin.rules.yml"
refuses "a rule that never fires" promtool test rules "$dir/wrong/nicpin.rules.test.yml"
# nicpin prints each metric of the rules; that of contended vectors is the watcher's.
grep -o 'nicpin_[a-z_]*' dist/prometheus/nicpin.rules.yml | sort -u | while read -r metric; do
  grep -q "^${metric}[{ ]" "$dir/planned.prom" || [ "$metric" = nicpin_interface_contended_vectors ] ||
    fail "the rules use $metric, which nicpin does not print"
done

echo "== promtool on the dashboard"
# queries FILE: prints the queries of a dashboard as rules
queries() {
  python3 - "$1" <<'END'
import json, sys
panels = json.load(open(sys.argv[1]))["panels"]
queries = [target["expr"].replace("$instance", ".*") for panel in panels for target in panel["targets"]]
print(json.dumps({"groups": [{"name": "dashboard", "rules": [{"record": f"query:{n}", "expr": q} for n, q in enumerate(queries)]}]}))
END
}
queries dist/prometheus/grafana-dashboard.json >"$dir/dashboard.yml"
promtool check rules "$dir/dashboard.yml"
sed 's/sum by (reason)/sum by reason)/' dist/prometheus/grafana-dashboard.json >"$dir/wrong/dashboard.json"
queries "$dir/wrong/dashboard.json" >"$dir/wrong/dashboard.yml"
refuses "a dashboard with a syntax error" promtool check rules "$dir/wrong/dashboard.yml"

echo "== node_exporter"
mkdir "$dir/textfile"
metrics "$dir/tree" --output "$dir/textfile/nicpin.prom"
port=$((20000 + RANDOM % 20000))
prometheus-node-exporter --web.listen-address="127.0.0.1:$port" --collector.disable-defaults --collector.textfile \
  --collector.textfile.directory="$dir/textfile" >"$dir/exporter.log" 2>&1 &
exporter=$!
scrape() {
  exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
  printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3
  cat <&3 >"$dir/scraped"
  exec 3>&-
}
for _ in $(seq 100); do
  if (scrape) 2>/dev/null && [ -s "$dir/scraped" ]; then break; fi
  kill -0 "$exporter" 2>/dev/null || { cat "$dir/exporter.log" >&2; fail "node_exporter ended"; }
  sleep 0.1
done
scrape
grep -x 'node_textfile_scrape_error 0' "$dir/scraped" || fail "node_exporter cannot read the metrics"
grep -x 'nicpin_as_planned 1' "$dir/scraped" || fail "the metrics are not in node_exporter's"
grep -c '^nicpin_' "$dir/scraped"
cp "$dir/escape.prom" "$dir/textfile/nicpin.prom"
scrape
refuses "a file with a bad escape" grep -x 'node_textfile_scrape_error 0' "$dir/scraped"

echo "== 1,000 rewrites under a reader"
# reads FILE: again and again until $dir/done exists; counts files and halves
reads() {
  local file=$1 lines seen=0 half=0
  while [ ! -e "$dir/done" ]; do
    mapfile -t lines <"$file"
    seen=$((seen + 1))
    if [ "${#lines[@]}" != "$whole" ] || [[ "${lines[-1]}" != nicpin_last_success_timestamp_seconds\ [0-9]* ]]; then
      half=$((half + 1))
    fi
  done
  echo "$seen $half" >"$dir/read"
}
file=$dir/textfile/nicpin.prom
metrics "$dir/tree" --output "$file"
whole=$(wc -l <"$file")
inode=$(stat -c %i "$file")
reads "$file" &
reader=$!
for _ in $(seq 1000); do
  "$nicpin" check --format prometheus --root "$dir/tree" --output "$file"
done
touch "$dir/done"
wait "$reader"
read -r seen half <"$dir/read"
echo "read $seen times: $half halves"
if [ "$half" != 0 ] || [ "$seen" -lt 100 ]; then fail "a reader saw $half halves in $seen readings"; fi
[ "$(stat -c %a "$file")" = 644 ] || fail "the mode of the file is $(stat -c %a "$file")"
[ "$(stat -c %i "$file")" != "$inode" ] || fail "the file was not replaced"
[ "$(find "$dir/textfile" -type f | wc -l)" = 1 ] || fail "temporary files are left: $(ls "$dir/textfile")"
# The reader notices a writer that does not rename.
rm "$dir/done"
cp "$file" "$dir/copy"
reads "$dir/copy" &
reader=$!
for _ in 1 2 3; do
  head -n 5 "$file" >"$dir/copy"
  sleep 0.05
  cat "$file" >"$dir/copy"
  sleep 0.05
done
touch "$dir/done"
wait "$reader"
read -r seen half <"$dir/read"
[ "$half" -gt 0 ] || fail "the reader does not notice half a file"
echo "noticed, as it should be: $half halves of a writer without rename"
echo "monitoring: everything passed in $SECONDS s"
