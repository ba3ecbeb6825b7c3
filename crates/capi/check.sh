#!/usr/bin/env bash
# Everything that the libraries for C and C++ must pass, one check after another: our own tests, then what others have written
# for LevelDB, which is fetched from the registries and never kept.
#
#   crates/capi/check.sh [--long] [NAME...]
#
# Needs Rust, cc, c++, make and pkg-config. What is fetched needs apt-get with Debian's packages, and pip with Python's headers;
# whatever cannot be had is skipped, loudly. --long runs what has its own duration for longer.
set -u -o pipefail
cd "$(dirname "$0")"

CC=${CC:-cc} CXX=${CXX:-c++}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target CARGO_INCREMENTAL=0
scratch=$(mktemp -d)
prefix=$scratch/prefix
long=
if [ "${1:-}" = --long ]; then long=1; shift; fi

passed=0 failed=0 skipped=0
trap 'rm -rf "$scratch"' EXIT

# Runs the function of that name and counts how it went. Status 77 means that something could not be had.
check() {
    local name=$1 started=$SECONDS status
    printf '\n=== %s\n' "$name"
    ( set -e; "$name" )
    status=$?
    case $status in
        0) passed=$((passed + 1)); printf -- '--- %s: passed, %d s\n' "$name" $((SECONDS - started)) ;;
        77) skipped=$((skipped + 1)); printf -- '!!! %s: SKIPPED\n' "$name" ;;
        *) failed=$((failed + 1)); printf -- '--- %s: FAILED, %d s\n' "$name" $((SECONDS - started)) ;;
    esac
}

# Prints a command, then runs it.
run() {
    printf '+ %s\n' "$*" >&2
    "$@"
}

# Says why a check cannot run.
skip() {
    printf '!!! SKIPPED: %s\n' "$*"
    exit 77
}

# Compiles C or C++ against the installed libraries: the program, the sources, flags.
c() {
    local program=$1
    shift
    # shellcheck disable=SC2046
    run "$CC" -std=c11 -O1 -g -Wall -Wextra -o "$program" "$@" $(pkg-config --cflags --libs terrace) -pthread
}

cxx() {
    local program=$1
    shift
    # shellcheck disable=SC2046
    run "$CXX" -O2 -g -Wall -Wextra -Wno-unused-parameter -o "$program" "$@" $(pkg-config --cflags --libs terrace) -pthread
}

# --- What is fetched.

# apt-get with lists of its own, sources among them; the machine's stay as they are.
apt() {
    apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$scratch/apt/sources" \
        -o Dir::State::Lists="$scratch/apt/lists" -o Dir::Cache="$scratch/apt/cache" -o APT::Sandbox::User=root "$@"
}

fetch_lists() {
    [ -e "$scratch/apt/ready" ] && return 0
    command -v apt-get > /dev/null || return 1
    mkdir -p "$scratch/apt/sources" "$scratch/apt/lists/partial" "$scratch/apt/cache/archives/partial"
    local file
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -e "$file" ] && sed 's/^Types: .*/Types: deb deb-src/' "$file" > "$scratch/apt/sources/$(basename "$file")"
    done
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -e "$file" ] && sed -n -e '/^deb /{p;s/^deb /deb-src /p}' "$file" > "$scratch/apt/sources/$(basename "$file" .list).list"
    done
    apt update && touch "$scratch/apt/ready"
}

# LevelDB's sources, as Debian has them, in $scratch/leveldb.
fetch_leveldb() {
    [ -e "$scratch/leveldb" ] && return 0
    fetch_lists || return 1
    mkdir -p "$scratch/source" "$scratch/unpacked"
    ( cd "$scratch/source" && apt source --download-only leveldb ) || return 1
    tar -xf "$scratch"/source/leveldb_*.orig.tar.* -C "$scratch/unpacked" --strip-components 1 || return 1
    mv "$scratch/unpacked" "$scratch/leveldb"
}

# The files of Debian packages, in $scratch/debian, where the machine does not have them.
fetch_packages() {
    local package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2> /dev/null | grep -q ' installed$' && continue
        [ -e "$scratch/debian/.$package" ] && continue
        fetch_lists || return 1
        mkdir -p "$scratch/debs/$package" "$scratch/debian"
        ( cd "$scratch/debs/$package" && apt download "$package" ) || return 1
        dpkg -x "$scratch/debs/$package"/*.deb "$scratch/debian" || return 1
        touch "$scratch/debian/.$package"
    done
}

# Flags with which a compiler finds those files.
debian_flags() {
    local libraries=$scratch/debian/usr/lib/$($CC -dumpmachine)
    printf '%s\n' "-isystem$scratch/debian/usr/include" "-L$libraries" "-Wl,-rpath,$libraries"
}

# LevelDB's own helpers that its programs need, compiled against our headers or those of LevelDB.
helpers() {
    printf '%s\n' "$scratch"/leveldb/util/{coding,crc32c,hash,histogram,logging,testutil}.cc "$scratch/leveldb/helpers/memenv/memenv.cc"
}

# --- The checks.

# Formatting, lints, and the tests of the Rust side; the headers are those that the sources make.
rust() {
    run cargo fmt --check || return 1
    run cargo clippy --locked --release --all-targets -- -D warnings || return 1
    run cargo test --locked --release || return 1
}

install() {
    run make --quiet install PREFIX="$prefix" || return 1
    [ "$(pkg-config --modversion terrace)" = "$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)" ] || return 1
    find "$prefix" -type f -o -type l | sed "s|$prefix/||" | sort
}

# The two examples, each twice, for it must cope with what it left; and what they leave.
examples() {
    local name
    for name in leveldb terrace; do
        c "$scratch/example-$name" -Werror -pedantic "examples/$name.c" || return 1
        run "$scratch/example-$name" "$scratch/example-$name.db" || return 1
        run "$scratch/example-$name" "$scratch/example-$name.db" > "$scratch/output" || return 1
    done
    grep -q '^ada Lovelace$' "$scratch/output" || return 1
    run "$scratch/example-terrace" "$scratch/example-terrace.db" "$scratch/example-copy.db" > /dev/null || return 1
    [ -e "$scratch/example-copy.db/CURRENT" ] || return 1
}

# Our tests in C and C++, with a look at memory, and against the static library.
own() {
    local name static
    for name in leveldb terrace; do
        c "$scratch/c-$name" -Werror -fsanitize=address,undefined "tests/c/$name.c" || return 1
        run "$scratch/c-$name" "$scratch/c-$name.db" || return 1
    done
    for name in c++11 c++20; do
        cxx "$scratch/cxx-$name" -Werror -std=$name -fno-exceptions -fno-rtti -fsanitize=address,undefined tests/cpp/leveldb.cc || return 1
        run "$scratch/cxx-$name" "$scratch/cxx-$name.db" || return 1
    done
    static=$(pkg-config --libs --static terrace | sed "s|-lterrace|$prefix/lib/libterrace.a|")
    # shellcheck disable=SC2046,SC2086
    run "$CC" -std=c11 -o "$scratch/c-static" tests/c/terrace.c $(pkg-config --cflags terrace) $static -pthread || return 1
    LD_LIBRARY_PATH='' run "$scratch/c-static" "$scratch/c-static.db" || return 1
}

# Every header stands alone, in C as in C++, as old as LevelDB's.
headers() {
    local header
    for header in include/leveldb/*.h include/leveldb/terrace/*.h include/terrace.h; do
        printf '#include "%s"\n#include "%s"\n' "${header#include/}" "${header#include/}" > "$scratch/header.cc"
        "$CXX" -std=c++11 -Wall -Wextra -Werror -Iinclude -fsyntax-only "$scratch/header.cc" || return 1
    done
    for header in leveldb/c.h terrace.h; do
        printf '#include "%s"\n' "$header" > "$scratch/header.c"
        "$CC" -std=c99 -Wall -Wextra -Werror -Iinclude -fsyntax-only "$scratch/header.c" || return 1
    done
}

# Our declarations are those of LevelDB's own header, and the library has each function.
declarations() {
    fetch_leveldb || skip "no source package of LevelDB"
    local theirs=$scratch/leveldb/include/leveldb
    # One after the other: the compiler refuses declarations that differ. The constants would be defined twice.
    cat > "$scratch/both.c" <<END
#include "$theirs/c.h"
#define leveldb_no_compression ours_no
#define leveldb_snappy_compression ours_snappy
#include "$PWD/include/leveldb/c.h"
#undef leveldb_no_compression
#undef leveldb_snappy_compression
_Static_assert((int)ours_no == (int)leveldb_no_compression, "");
_Static_assert((int)ours_snappy == (int)leveldb_snappy_compression, "");
END
    run "$CC" -std=c11 -Wall -Wextra -Werror -I"$scratch/leveldb/include" -fsyntax-only "$scratch/both.c" || return 1
    grep -o 'leveldb_[a-z_]*(' "$theirs/c.h" | tr -d '(' | sort -u > "$scratch/declared"
    nm -D --defined-only "$prefix/lib/libterrace.so" | sed -n 's/.* T \(leveldb_.*\)/\1/p' | sort -u > "$scratch/exported"
    printf '%s functions\n' "$(wc -l < "$scratch/declared")"
    run diff "$scratch/declared" "$scratch/exported" || return 1
    # Nothing but the two interfaces is seen.
    ! nm -D --defined-only "$prefix/lib/libterrace.so" | grep -v -e ' leveldb_' -e ' terrace_' | grep ' [TDB] ' || return 1
}

# A program that was compiled and linked with LevelDB runs with Terrace without being touched.
relink() {
    fetch_packages libleveldb-dev libleveldb1d libsnappy1v5 || skip "no packages of LevelDB"
    # shellcheck disable=SC2046
    run "$CC" -std=c11 -o "$scratch/linked" examples/leveldb.c $(debian_flags) -lleveldb || return 1
    run "$scratch/linked" "$scratch/linked-leveldb.db" > "$scratch/by-leveldb" || return 1
    [ ! -e "$scratch/linked-leveldb.db/IDENTITY" ] || return 1
    LD_PRELOAD=$prefix/lib/libterrace.so run "$scratch/linked" "$scratch/linked-terrace.db" > "$scratch/by-terrace" || return 1
    [ -e "$scratch/linked-terrace.db/IDENTITY" ] || return 1
    run diff "$scratch/by-leveldb" "$scratch/by-terrace" || return 1
    # What LevelDB has written is refused, with a word why.
    ! LD_PRELOAD=$prefix/lib/libterrace.so "$scratch/linked" "$scratch/linked-leveldb.db" 2> "$scratch/output" || return 1
    grep 'a database that LevelDB has written' "$scratch/output" || return 1
}

# LevelDB's test of its interface in C. It sets a comparator of its own, which is refused: that one line is left out.
c_test() {
    fetch_leveldb || skip "no source package of LevelDB"
    local line='^  leveldb_options_set_comparator(options, cmp);$'
    [ "$(grep -c "$line" "$scratch/leveldb/db/c_test.c")" = 1 ] || return 1
    sed "/$line/d" "$scratch/leveldb/db/c_test.c" > "$scratch/c_test.c"
    c "$scratch/c_test" -w "$scratch/c_test.c" || return 1
    mkdir -p "$scratch/c_test.db"
    TEST_TMPDIR=$scratch/c_test.db run "$scratch/c_test" || return 1
    # With the line, it must fail there, for the reason given.
    c "$scratch/c_test_whole" -w "$scratch/leveldb/db/c_test.c" || return 1
    ! TEST_TMPDIR=$scratch/c_test.db "$scratch/c_test_whole" 2> "$scratch/output" || return 1
    grep 'comparator "foo" is not taken' "$scratch/output" || return 1
}

# The cases of LevelDB's db_test that concern the interface; README.md says why the others are left out.
DB_TEST=(Empty EmptyKey EmptyValue ReadWrite PutDeleteGet GetFromImmutableLayer GetFromVersions GetMemUsage GetSnapshot
    GetIdenticalSnapshots IterateOverEmptySnapshot GetLevel0Ordering GetOrderedByLevels GetPicksCorrectFile IterEmpty IterSingle
    IterMulti IterSmallAndLargeMix IterMultiWithDelete IterMultiWithDeleteAndCompaction Recover RecoveryWithEmptyLog
    RecoverDuringMemtableCompaction IteratorPinsRef Snapshot L0_CompactionBug_Issue44_a
    L0_CompactionBug_Issue44_b Fflush_Issue474 ComparatorCheck DBOpen_Options DestroyEmptyDir DestroyOpenDB Locking
    MultiThreaded Randomized)

db_test() {
    fetch_leveldb || skip "no source package of LevelDB"
    fetch_packages libgtest-dev libgmock-dev || skip "no package of googletest"
    local filter cases
    # Ours come before LevelDB's own: leveldb/*.h, and what stands in for its inside.
    # shellcheck disable=SC2046
    cxx "$scratch/db_test" -std=c++14 -w -DLEVELDB_PLATFORM_POSIX -ffunction-sections -Wl,--gc-sections -Itests/leveldb_source -Iinclude "-I$scratch/leveldb" \
        "$scratch"/leveldb/db/{db_test,dbformat,filename}.cc $(helpers) $(debian_flags) -lgtest -lgmock || return 1
    filter=$(printf 'DBTest.%s:' "${DB_TEST[@]}")
    mkdir -p "$scratch/db_test.db"
    TEST_TMPDIR=$scratch/db_test.db/ run "$scratch/db_test" --gtest_brief=1 --gtest_filter="$filter" | tee "$scratch/output" || return 1
    cases=$(sed -n 's/.* \([0-9]*\) tests from 1 test suite ran.*/\1/p' "$scratch/output" | tail -n 1)
    [ "$cases" = "${#DB_TEST[@]}" ] || { printf 'ran %s cases of %d\n' "$cases" "${#DB_TEST[@]}"; return 1; }
}

# plyvel, a binding for Python, built against us, with its own tests, but for two.
plyvel() {
    command -v python3 > /dev/null || skip "no Python"
    local python=$scratch/python drop=
    python3 -m venv "$python" || skip "no virtual environment for Python"
    "$python/bin/pip" install -q --disable-pip-version-check pytest setuptools wheel || skip "no packages for Python"
    "$python/bin/pip" download -q --disable-pip-version-check --no-deps --no-binary :all: --no-build-isolation -d "$scratch/plyvel" plyvel ||
        skip "no source archive of plyvel"
    mkdir -p "$scratch/plyvel/source" "$scratch/named"
    tar -xf "$scratch"/plyvel/plyvel-*.tar.gz -C "$scratch/plyvel/source" --strip-components 1 || return 1
    # It asks for -lleveldb.
    printf 'INPUT(-lterrace)\n' > "$scratch/named/libleveldb.so"
    CFLAGS="-I$prefix/include/terrace" LDFLAGS="-L$scratch/named -L$prefix/lib -Wl,-rpath,$prefix/lib" \
        run "$python/bin/pip" install -q --disable-pip-version-check --no-deps --no-build-isolation "$scratch/plyvel/source" || return 1
    local extension
    extension=$(find "$python" -name '_plyvel*.so')
    ldd "$extension" | grep libterrace || return 1
    ! ldd "$extension" | grep libleveldb || return 1
    local test
    test=$(find "$scratch/plyvel/source/test" -name 'test_*.py' 2> /dev/null | head -n 1)
    [ -n "$test" ] || skip "the source archive of plyvel has no tests"
    mkdir -p "$scratch/plyvel/test"
    cp "$test" "$scratch/plyvel/test"
    # One test wants to be refused by permissions, which root is not, unless it gives that up.
    if [ "$(id -u)" = 0 ] && command -v setpriv > /dev/null; then
        drop="setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search"
    fi
    cd "$scratch/plyvel/test" || return 1
    test=$(basename "$test")
    # shellcheck disable=SC2086
    run $drop "$python/bin/python" -m pytest -q -p no:cacheprovider "$test" \
        --deselect "$test::test_comparator" --deselect "$test::test_approximate_sizes" || return 1
    # What is left out fails for the reasons given: an order of its own, and keys of up to 99,900 bytes.
    ! "$python/bin/python" -m pytest -q -p no:cacheprovider "$test::test_comparator" "$test::test_approximate_sizes" > "$scratch/output" || return 1
    grep 'comparator "CaseInsensitiveComparator" is not taken' "$scratch/output" || return 1
    grep 'is longer than 65535' "$scratch/output" || return 1
}

# LevelDB's benchmark, compiled against both. That it runs is checked; the figures are for who reads them.
db_bench() {
    fetch_leveldb || skip "no source package of LevelDB"
    fetch_packages libgtest-dev libgmock-dev libleveldb-dev libleveldb1d libsnappy1v5 || skip "no packages of LevelDB or googletest"
    local number=100000 store
    local benchmarks=fillseq,fillsync,fillrandom,overwrite,readrandom,readrandom,readseq,readreverse,compact,readrandom,readseq,readreverse,seekrandom,fill100K,deleterandom,stats
    [ -n "$long" ] && number=1000000
    # shellcheck disable=SC2046
    cxx "$scratch/db_bench-terrace" -std=c++14 -w -DLEVELDB_PLATFORM_POSIX -DNDEBUG -Itests/leveldb_source -Iinclude "-I$scratch/leveldb" \
        "$scratch/leveldb/benchmarks/db_bench.cc" $(helpers) $(debian_flags) -lgtest -lgmock || return 1
    mkdir -p "$scratch/port/port"
    cp tests/leveldb_source/port/port_config.h "$scratch/port/port"
    # shellcheck disable=SC2046
    run "$CXX" -O2 -g -std=c++14 -w -DLEVELDB_PLATFORM_POSIX -DNDEBUG -o "$scratch/db_bench-leveldb" "-I$scratch/port" "-I$scratch/leveldb/include" "-I$scratch/leveldb" \
        "$scratch/leveldb/benchmarks/db_bench.cc" $(helpers) $(debian_flags) -lleveldb -lgtest -lgmock -pthread || return 1
    for store in leveldb terrace; do
        run "$scratch/db_bench-$store" --db="$scratch/db_bench-$store.db" --num="$number" --benchmarks="$benchmarks" \
            > "$scratch/db_bench-$store.out" 2> "$scratch/db_bench-$store.err" || { cat "$scratch"/db_bench-$store.*; return 1; }
    done
    # Each line of figures once, both beside each other, in microseconds for each operation.
    local figures='s/^\([a-z0-9A-Z]*\) *: *\([0-9.]*\) micros\/op.*/\1 \2/p'
    paste <(sed -n "$figures" "$scratch/db_bench-leveldb.out") <(sed -n "$figures" "$scratch/db_bench-terrace.out") |
        awk 'BEGIN { printf "%-14s %12s %12s   microseconds for each operation\n", "", "LevelDB", "Terrace" }
             { printf "%-14s %12s %12s\n", $1, $2, $4; lines++; different += $1 != $3 }
             END { exit lines < 15 || different > 0 }' || return 1
}

# What C costs beside Rust: bench/cost.sh, long enough only to see that it runs, unless --long.
cost() {
    if [ -n "$long" ]; then run bench/cost.sh; else run bench/cost.sh 1 20000 20000; fi || return 1
}

ALL="rust install headers examples own declarations relink c_test db_test plyvel db_bench cost"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
names=${*:-$ALL}
case " $names " in
    " rust " | *" install "*) ;;
    # The others compile against what this installs.
    *) names="install $names" ;;
esac
for name in $names; do
    case " $ALL " in
        *" $name "*) check "$name" ;;
        *) printf 'no such check: %s\n' "$name"; exit 2 ;;
    esac
done

printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
