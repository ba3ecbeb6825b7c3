#!/usr/bin/env bash
# Everything that a change of the package for Python must pass: format and lints, `pip install` of the checkout, tests, types.
# Needs cargo, Python 3.10 or newer and Python's registry of packages; without one of the last two it says SKIPPED and ends well.
#
#   crates/python/check.sh            with every Python that is installed
#   crates/python/check.sh --one      with the first of them
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1

export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1 PYTHONWARNDEFAULTENCODING=
# As in .ci/run: nothing is kept for a second build, and linking does not optimise across crates.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

run() {
    printf '+ %s\n' "$*"
    "$@"
}

skip() {
    printf '!!! SKIPPED: %s, so the package for Python is not tested.\n' "$1"
    exit 0
}

# Whether this is an interpreter of a version that the wheel is for.
serves() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' > /dev/null 2>&1
}

# Interpreters that are installed, each minor version once: those of the path, and those of pyenv.
interpreters() {
    local seen=" " python minor
    for python in python3 python3.{10..19} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do
        serves "$python" || continue
        minor=$("$python" -c 'import sys; print(sys.version_info.minor)')
        case $seen in *" $minor "*) continue ;; esac
        seen="$seen$minor "
        printf '%s\n' "$python"
    done
}

mapfile -t pythons < <(interpreters)
[ "${#pythons[@]}" -gt 0 ] || skip "there is no Python 3.10 or newer with venv"
main=$scratch/main
run "${pythons[0]}" -m venv "$main" || exit 1
"$main/bin/pip" download --quiet --no-deps --dest "$scratch/download" maturin 2> "$scratch/why" ||
    { tail -n 1 "$scratch/why"; skip "the registry of packages cannot be reached"; }

run cargo fmt --manifest-path crates/python/Cargo.toml --check || exit 1
PYO3_PYTHON=$main/bin/python run cargo clippy --locked --manifest-path crates/python/Cargo.toml -- -D warnings || exit 1

# What a user does.
run "$main/bin/pip" install --quiet ./crates/python || exit 1
run "$main/bin/pip" install --quiet hypothesis mypy pytest || exit 1
cd crates/python || exit 1
cache=(-o cache_dir="$scratch/pytest")
run "$main/bin/python" -m pytest -q "${cache[@]}" || exit 1
run "$main/bin/python" -m mypy --cache-dir "$scratch/mypy" tests tools || exit 1
run "$main/bin/python" -m mypy --cache-dir "$scratch/mypy" --disable-error-code import-not-found --disable-error-code import-untyped bench.py || exit 1
allowed=$PWD/tests/stubtest-allowlist.txt
(cd "$scratch" && run "$main/bin/python" -m mypy.stubtest --allowlist "$allowed" terrace) || exit 1

if [ "${1:-}" = --one ]; then
    printf 'Python: all passed, with one interpreter of %d\n' "${#pythons[@]}"
    exit 0
fi
# The same wheel serves the others.
run "$main/bin/pip" wheel --quiet --no-deps --wheel-dir "$scratch/wheels" . || exit 1
ls "$scratch"/wheels/terrace-*-cp310-abi3-*.whl || exit 1
for python in "${pythons[@]:1}"; do
    other=$scratch/other
    rm -rf "$other"
    run "$python" -m venv "$other" || exit 1
    run "$other/bin/pip" install --quiet hypothesis pytest "$scratch"/wheels/terrace-*.whl || exit 1
    run "$other/bin/python" -m pytest -q "${cache[@]}" --ignore tests/test_stateful.py || exit 1
done
printf 'Python: all passed, with %d interpreters\n' "${#pythons[@]}"
