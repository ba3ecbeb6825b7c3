#!/usr/bin/env bash
# All of this crate: its tests with every feature; the alerts, by promtool; a real Prometheus that scrapes a store under
# load and answers every query of the dashboard. Needs Rust, Python 3 and Debian's package prometheus, which it unpacks for
# itself where it is not installed. A few minutes at most, beyond compiling. What cannot be had is skipped, loudly.
#
#   crates/metrics/check.sh             all
#   crates/metrics/check.sh NAME...     only those: tests lints alerts prometheus grafana
set -u -o pipefail
cd "$(dirname "$0")"

scratch=$(mktemp -d)
started=()
trap end EXIT

# Ends what this script has started.
end() {
    for pid in ${started[@]+"${started[@]}"}; do
        kill "$pid" 2> /dev/null && wait "$pid" 2> /dev/null
    done
    rm -rf "$scratch"
}

run() {
    printf '+ %s\n' "$*"
    "$@"
}

skipped() {
    printf '!!! SKIPPED: %s\n' "$*"
}

# Finds prometheus and promtool: installed, or unpacked from Debian's package.
find_prometheus() {
    command -v prometheus promtool > /dev/null && return 0
    if [ ! -d "$scratch/prometheus" ]; then
        command -v apt-get dpkg > /dev/null || return 1
        (
            mkdir "$scratch/prometheus" && cd "$scratch/prometheus" || exit 1
            apt-get download prometheus || { apt-get update && apt-get download prometheus; } || exit 1
            dpkg -x prometheus_*.deb .
        ) > "$scratch/apt.log" 2>&1 || { tail -n 3 "$scratch/apt.log"; return 1; }
    fi
    PATH=$PATH:$scratch/prometheus/usr/bin
    prometheus --version > /dev/null 2>&1
}

# Waits until the command succeeds, for a minute at most.
until_it() {
    for _ in $(seq 300); do
        "$@" > /dev/null 2>&1 && return 0
        sleep 0.2
    done
    printf 'waited in vain for: %s\n' "$*"
    return 1
}

# Fetches an address.
fetch() {
    python3 -c 'import sys, urllib.request; sys.stdout.buffer.write(urllib.request.urlopen(sys.argv[1], timeout=10).read())' "$1"
}

tests() {
    run cargo test --locked -p terrace-metrics --all-features || return 1
}

lints() {
    run cargo clippy --locked -p terrace-metrics --all-features --all-targets -- -D warnings || return 1
    RUSTDOCFLAGS="-D warnings" run cargo doc --locked -p terrace-metrics --all-features --no-deps || return 1
}

alerts() {
    find_prometheus || { skipped 'no Prometheus, so no alert is checked. apt-get install prometheus mends that.'; return 0; }
    run promtool check rules --lint=all --lint-fatal alerts.yml || return 1
    run promtool test rules alerts_test.yml || return 1
}

prometheus_asks() {
    find_prometheus || { skipped 'no Prometheus, so no query is asked. apt-get install prometheus mends that.'; return 0; }
    command -v python3 > /dev/null || { skipped 'no Python 3, so no query is asked.'; return 0; }
    run cargo build --locked -p terrace-metrics --all-features --example serve || return 1
    local target port
    target=$(cargo metadata --locked --no-deps --format-version 1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])') || return 1
    "$target/debug/examples/serve" 127.0.0.1:0 "$scratch/store" > "$scratch/serve.log" 2>&1 &
    started+=($!)
    until_it grep -q '^http' "$scratch/serve.log" || return 1
    local metrics
    metrics=$(grep '^http' "$scratch/serve.log")
    fetch "$metrics" > "$scratch/metrics.txt" || return 1
    run promtool check metrics < "$scratch/metrics.txt" || return 1

    local address=${metrics#http://}
    cat > "$scratch/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["$PWD/alerts.yml"]
scrape_configs: [{job_name: terrace, static_configs: [{targets: ["${address%/metrics}"]}]}]
END
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    prometheus --config.file="$scratch/prometheus.yml" --storage.tsdb.path="$scratch/tsdb" \
        --web.listen-address="127.0.0.1:$port" > "$scratch/prometheus.log" 2>&1 &
    started+=($!)
    until_it fetch "http://127.0.0.1:$port/-/ready" || { tail "$scratch/prometheus.log"; return 1; }
    run python3 ask.py dashboard.json "http://127.0.0.1:$port" 120 || { tail "$scratch/serve.log" "$scratch/prometheus.log"; return 1; }
}

# Grafana is in no registry from which this script could take it. Its own types, which it publishes, tell whether the
# dashboard is one.
grafana() {
    skipped 'no Grafana, so nobody has drawn the dashboard. Its model is checked instead.'
    command -v npm > /dev/null || { skipped 'no npm, so neither is its model.'; return 0; }
    (
        cp dashboard.ts "$scratch/" && cd "$scratch" || exit 1
        { printf 'export const dashboard: Plain<Model> = '; cat "$OLDPWD/dashboard.json"; } >> dashboard.ts
        npm install --no-audit --no-fund --silent --ignore-scripts @grafana/schema typescript @types/node
    ) > "$scratch/npm.log" 2>&1 || { tail -n 3 "$scratch/npm.log"; skipped 'npm has no types of Grafana, so nor is its model.'; return 0; }
    (cd "$scratch" && run npx --no-install tsc --noEmit --strict --skipLibCheck --moduleResolution bundler --module esnext --target es2022 dashboard.ts) || return 1
}

failed=0
for name in ${*:-tests lints alerts prometheus grafana}; do
    printf '\n=== metrics: %s\n' "$name"
    case $name in
        prometheus) prometheus_asks ;;
        tests | lints | alerts | grafana) "$name" ;;
        *) printf 'no such check: %s\n' "$name"; exit 2 ;;
    esac || { printf -- '--- metrics: %s FAILED\n' "$name"; failed=1; }
done
exit "$failed"
