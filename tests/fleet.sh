#!/bin/bash
# tests/fleet.sh - `nicpin fleet` behind a real clush: its exec worker checks 200 trees, and nodeset takes the lists of
# hosts. Then the memory and the time for 10,000 hosts, and the CPU time for 1,000 captures beside that of gunzip. Needs
# clush and nodeset (Debian: clustershell), python3, which clush is written in, and GNU time (Debian: time). NICPIN is the
# binary; the limits of time are for a release build, ten times of them for a debug build.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
nicpin=$(readlink -f "${NICPIN:-target/debug/nicpin}")
for tool in clush nodeset python3 /usr/bin/time; do
  if ! command -v "$tool" >/dev/null; then
    echo "skipped: $tool is missing (Debian: clustershell, time)" >&2
    exit 77
  fi
done
dir=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
trap 'rm -rf "$dir"' EXIT
slower=1
case $nicpin in */debug/*) slower=10 ;; esac

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# value EXPRESSION FILE: prints an expression about `f`, a report in JSON
value() { python3 -c 'import json, sys; f = json.load(open(sys.argv[2])); print(eval(sys.argv[1]))' "$@"; }

echo "== 200 trees by clush"
# The trees share their files, except those that differ.
cp -a fixtures/two-node "$dir/planned"
"$nicpin" apply -q --root "$dir/planned"
mkdir "$dir/trees"
for host in $(seq 200); do cp -al "$dir/planned" "$dir/trees/h$host"; done
# own HOST PATH TEXT: the tree of HOST gets a file of its own
own() {
  mkdir -p "$(dirname "$dir/trees/$1$2")"
  rm -f "$dir/trees/$1$2"
  echo "$3" >"$dir/trees/$1$2"
}
irq=$(basename "$(dirname "$(find "$dir/planned/proc/irq" -name smp_affinity | sort | tail -n 1)")")
for host in h3 h17 h120; do own "$host" "/proc/irq/$irq/smp_affinity" ff; done
own h42 /sys/devices/system/node/has_memory 0
own h77 /sys/devices/system/cpu/online 0-6
rm -r "$dir/trees/h200/sys/class/net"
check="$nicpin check --json --root $dir/trees/%h"
clush -w 'h[1-200]' -f 8 --worker=exec "$check" 2>"$dir/clush.err" | "$nicpin" fleet --json - >"$dir/fleet.json" && status=0 || status=$?
cat >"$dir/expected" <<'END'
199
195
h3,h17,h120
h42
h77
END
{
  value 'f["hosts"]' "$dir/fleet.json"
  value 'f["planned"]' "$dir/fleet.json"
  value '",".join(h for d in f["drift"] for h in d["hosts"] if d["reason"] == "moved-by-other")' "$dir/fleet.json"
  value '[",".join(c["plans"][0]["hosts"]) for c in f["classes"] for d in c["deviations"] if d["code"] == "node-without-memory"][0]' "$dir/fleet.json"
  value '[",".join(c["plans"][0]["hosts"]) for c in f["classes"] for d in c["deviations"] if d["code"] == "cpus"][0]' "$dir/fleet.json"
} >"$dir/found"
diff "$dir/expected" "$dir/found" || fail "clush | nicpin fleet"
[ "$status" = 1 ] || fail "exit code $status"
[[ $(value 'f["failed"][0]["error"]' "$dir/fleet.json") == *"/sys/class/net does not exist"* ]] || fail "why h200 cannot be checked"
moved=$(sed -n 3p "$dir/found")
nodeset -f "$moved"
[ "$(nodeset -f "$moved")" = 'h[3,17,120]' ] || fail "nodeset does not take $moved"
# With both streams, clush repeats on standard error what the host without an answer said.
clush -w 'h[1-2,200]' -f 8 --worker=exec "$check" 2>&1 | "$nicpin" fleet - >"$dir/fleet.txt" 2>"$dir/fleet.err" && status=0 || status=$?
cat "$dir/fleet.err"
grep -q '^nicpin: h200: ' "$dir/fleet.err" || fail "the host that cannot be checked is not named"
[ "$status" = 1 ] || fail "exit code $status"
grep '^2 hosts, ' "$dir/fleet.txt"

echo "== 10,000 hosts"
# Hosts of twelve classes, in four states
python3 - "$dir" "$nicpin" <<'END'
import copy, json, random, subprocess, sys
dir, nicpin = sys.argv[1:]
def check(root):
    return json.loads(subprocess.run([nicpin, "check", "--json", "--root", root], stdout=subprocess.PIPE).stdout)
bases = [check(dir + "/planned"), check("fixtures/two-node"), check("fixtures/two-socket-mlx4"), check("fixtures/dl980")]
documents = []
for kind in range(12):
    base = copy.deepcopy(bases[kind % len(bases)])
    base["class"], base["hash"] = "c%015x" % kind, "d%015x" % kind
    documents.append(base)
random.seed(1)
with open(dir + "/stream", "w") as out:
    for host in range(10000):
        document = random.choice(documents[:4] if host % 50 else documents)
        document["host"]["name"] = "node%05d" % host
        out.write(json.dumps(document) + "\n")
END
head -n 100 "$dir/stream" >"$dir/few"
stat -c '%s bytes: %n' "$dir/stream" "$dir/few"
# used COMMAND...: prints memory in KiB, wall and CPU time in ms. A larger program that started the command would be
# counted in its memory.
used() {
  env time --quiet -o "$dir/used" -f '%M %e %U %S' "$@" >"$dir/out" 2>&1 || [ $? = 2 ] || fail "$*: $(tail -n 3 "$dir/out")"
  awk '{ printf "%d %d %d\n", $1, $2 * 1000, ($3 + $4) * 1000 }' "$dir/used"
}
for format in table json; do
  read -r few _ _ <<<"$(used "$nicpin" fleet --format "$format" "$dir/few")"
  read -r many time _ <<<"$(used "$nicpin" fleet --format "$format" "$dir/stream")"
  echo "$format: 100 hosts $few KiB; 10,000 hosts $many KiB in $time ms"
  # Of a document of 10 kB only the host's name stays: to count it, in the report, and in the lines of the table.
  [ $((many - few)) -le 3072 ] || fail "10,000 hosts take $many KiB, 100 hosts $few KiB"
  [ "$time" -lt $((10000 * slower)) ] || fail "10,000 hosts take $time ms"
done

echo "== 1,000 captures, beside gunzip"
mkdir "$dir/captures"
"$nicpin" capture --root fixtures/dl980 -o "$dir/captures/h1.tar.gz" 2>/dev/null
for host in $(seq 2 1000); do cp "$dir/captures/h1.tar.gz" "$dir/captures/h$host.tar.gz"; done
# By turns, and the least of three CPU times, because something else may run. A thread for each CPU reads archives,
# plans and checks; this was measured to take 1.1 to 1.6 times the CPU time of gunzip on the same CPUs, as the host was
# idle or busy.
least_gunzip=999999 least=999999
for _ in 1 2 3; do
  read -r _ _ cpu <<<"$(used sh -c 'exec gunzip -c "$@" >/dev/null' - "$dir/captures/"*.tar.gz)"
  [ "$cpu" -ge "$least_gunzip" ] || least_gunzip=$cpu
  read -r memory _ cpu <<<"$(used "$nicpin" fleet "$dir/captures")"
  [ "$cpu" -ge "$least" ] || least=$cpu
done
echo "1,000 captures of 128 CPUs: $least ms of CPU time and $memory KiB; gunzip: $least_gunzip ms"
[ "$least" -le $((least_gunzip * 2 * slower)) ] || fail "fleet takes $least ms of CPU time, gunzip $least_gunzip ms"
[ "$memory" -le $((64 * 1024)) ] || fail "1,000 captures take $memory KiB"
echo "fleet: everything passed in $SECONDS s"
