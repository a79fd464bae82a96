#!/bin/sh
# Runs a routing daemon over an emulated mesh, cuts each of its two ways once, and compares with expected.txt.
# As root: ./run.sh [JUNIT.xml]. Exit status 0 if everything is as expected. MESHPACE names the program, if it is not in the path.
set -u
here=$(cd "$(dirname "$0")" && pwd)

if [ "${1:-}" = inside ]; then
    # In n0, started last.
    start=$(date +%s.%N)
    until ping -c 1 -W 1 n4 >/dev/null 2>&1; do sleep 0.2; done
    found=$(date +%s.%N)
    ping -D -n -i 0.2 -w 45 n4 >"$RUN_DIR/answers"
    awk -v start="$start" -v found="$found" '
        /icmp_seq=/ {
            at = substr($1, 2) + 0
            if (last && at - last > silence) silence = at - last
            last = at
            split($0, part, "ttl="); split(part[2], ttl, " ")
            if (!lowest || ttl[1] < lowest) lowest = ttl[1]
        }
        END { printf "found_s %.1f\nttl %d\nsilence_s %.1f\n", found - start, lowest, silence }' "$RUN_DIR/answers" >"$RUN_DIR/measured"
    awk '
        NR == FNR { measured[$1] = $2; next }
        /^#/ || NF < 3 { next }
        {
            ok = $2 == "=" ? measured[$1] == $3 : $1 in measured && measured[$1] <= $3 + 0
            printf "%s: %s %s, expected %s %s\n", ok ? "ok" : "FAILED", $1, measured[$1], $2, $3
            failed += !ok
        }
        END { exit failed > 0 }' "$RUN_DIR/measured" "$here/expected.txt"
    exit
fi

RUN_DIR=$(mktemp -d)
export RUN_DIR
trap 'rm -rf "$RUN_DIR"' EXIT
"${MESHPACE:-meshpace}" emulate "$here/mesh.toml" --mode kernel --no-routes ${1:+--junit "$1"} \
    --link '25 s: n1 n2 down' --link '40 s: n1 n2 up' --link '40 s: n1 n5 down' \
    --exec "n0: '$here/run.sh' inside"
