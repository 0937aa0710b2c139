#!/bin/sh
# Tests the libraries as they are shipped, with stand-ins for both runtimes: theirs, linked statically, returns 99; ours
# returns 12 or 13. Arguments: folder of the guest libraries, folder of cudart's lists of names, a folder for files, a C
# compiler.
set -eu
built=$1 lists=$2 work=$3/redirect-test cc=$4
here=$(cd "$(dirname "$0")" && pwd)
rm -rf "$work"
mkdir -p "$work/lib"
cd "$work"
unset HAWSER_LOG LD_AUDIT LD_PRELOAD LD_LIBRARY_PATH

fail() { echo "FAIL: $*" >&2; exit 1; }
expect() { # expect OUTPUT COMMAND...
    wanted=$1; shift
    code=0
    "$@" >out 2>err || code=$?
    [ "$code" = 0 ] && [ "$(cat out)" = "$wanted" ] || { cat err >&2; fail "$*: exit $code, \"$(cat out)\", not \"$wanted\""; }
}
expect_line() { grep -q "$1" err || { cat err >&2; fail "no line about: $1"; }; }
expect_silence() { [ ! -s err ] || { cat err >&2; fail "lines on stderr"; }; }

cp "$built/libhawser-audit.so" "$built/libhawser-preload.so" lib/
with_audit() { LD_AUDIT=$work/lib/libhawser-audit.so "$@"; }
with_preload() { LD_PRELOAD=$work/lib/libhawser-preload.so "$@"; }
with_both() { LD_AUDIT=$work/lib/libhawser-audit.so LD_PRELOAD=$work/lib/libhawser-preload.so "$@"; }

# Runtimes: runtime NAME VALUE ATTRIBUTE LIST.
runtime() {
    awk -v value="$2" -v attribute="$3" -v but="cudaLaunchKernel cudaDeviceReset __cudaGetProcAddress" \
        -f "$here/runtime.awk" "$4" >"$1.c"
    "$cc" -O2 -w -fno-builtin -fPIC -c -o "$1.o" "$1.c"
}
hidden='__attribute__((visibility("hidden")))'
"$cc" -O2 -fPIC -c -o short.o "$here/short.c"
"$cc" -O2 -fPIC -fvisibility=hidden -c -o theirs-arguments.o "$here/ours.c"
for major in 12 13; do
    runtime ours-$major $major "" "$lists/exports-$major.txt"
    for name in cudaDeviceReset __cudaGetProcAddress; do echo "int $name(void) { return $major; }"; done >rest.c
    "$cc" -O2 -w -shared -fPIC -o lib/libcudart.so.$major -Wl,-soname,libcudart.so.$major ours-$major.o rest.c "$here/ours.c"
    runtime theirs-$major 99 "$hidden" "$lists/exports-$major.txt"
done
runtime theirs-11 99 "$hidden" "$here/../names-11.txt"
sed -i '/__cudaRegisterTexture/d' theirs-11.c
theirs() { echo "theirs-$1.o short.o theirs-arguments.o"; }

link() { # link OUTPUT MAJOR SOURCE [OPTION...]
    output=$1 major=$2 source=$3; shift 3
    # shellcheck disable=SC2046 # several words
    "$cc" -O2 -o "$output" "$@" "$here/$source" $(theirs "$major") -ldl -lpthread
}
link program 13 program.c -fPIE -pie
link fixed 13 program.c -fno-pie -no-pie
link late 13 program.c -DWITHOUT_CONSTRUCTOR
link old 12 program.c
link object-12.so 12 object.c -shared -fPIC -Wl,-z,defs
link object-13.so 13 object.c -shared -fPIC -Wl,-z,defs
"$cc" -O2 -shared -fPIC -o shared.so "$here/object.c" lib/libcudart.so.13 -Wl,-rpath,"$work/lib"

echo shouldLeaveAProgramWithoutTheLibraries
expect "99 99 99 0" ./program

echo shouldRedirectProgramsBeforeTheirConstructors
for way in with_audit with_preload with_both; do
    for program in program fixed; do
        expect "13 13 13 0" $way ./$program
        expect_silence
    done
    expect "12 12 12 0" $way ./old
    expect_silence
done

echo shouldFindAProgramThatTheLoaderStarts
loader=$(readelf -l program | sed -n 's/.*interpreter: \(.*\)]/\1/p')
expect "13 13 13 0" with_audit "$loader" ./program
expect "13 13 13 0" with_preload "$loader" ./program

echo shouldRedirectSeveralObjectsOfOneProcess
expect "13 13 13 0
1212 1313 1313 and nothing is left" with_audit ./program ./object-12.so ./object-13.so ./shared.so
expect_silence
# LD_PRELOAD does not reach objects that are opened later.
expect "13 13 13 0
9999 9999 and nothing is left" with_preload ./program ./object-12.so ./object-13.so

echo shouldRedirectLibrariesBeforeTheirConstructors
printf '#include <stdio.h>\nint object_runtimes(void);\nint main(void) { return printf("%%d\\n", object_runtimes()) < 0; }\n' >linked.c
"$cc" -o linked linked.c ./object-13.so
for way in with_audit with_preload with_both; do
    expect 1313 $way ./linked
done

echo shouldPassAllArgumentsOfTheFirstCall
expect 1785 with_audit ./late arguments
expect 1785 with_preload ./late arguments

echo shouldServeFirstCallsOfSeveralThreads
for _ in 1 2 3 4 5 6 7 8 9 10; do
    expect "13 13 13 13 13 13 13 13 " with_audit ./late threads
done

echo shouldRedirectInChildren
expect "13 13 13 0" with_audit sh -c ./program

echo shouldNameTheFunctionsWithHawserLog
expect "13 13 13 0" with_audit env HAWSER_LOG=debug ./program
expect_line "/program: 421 functions of its CUDA 13 runtime lead to $work/lib/libcudart.so.13"

echo shouldLeaveNoPageWritableAndExecutable
cat >pages.c <<'C'
#include <stdio.h>
#include <string.h>
int cudaMalloc(void);
int main(void) {
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    int ours = cudaMalloc();
    while (fgets(line, sizeof line, maps) != NULL) {
        if (strstr(line, " rwx") != NULL) {
            fputs(line, stdout);
        }
    }
    return ours == 13 ? 0 : 1;
}
C
# shellcheck disable=SC2046
"$cc" -o pages pages.c $(theirs 13)
expect "" with_audit ./pages

echo shouldLeaveAStrippedProgram
strip -o stripped program
expect "99 99 99 0" with_audit ./stripped
expect_silence

echo shouldRefuseCuda11ByName
"$cc" -O2 -w -fno-builtin -fPIC -c -o theirs-11.o theirs-11.c
# shellcheck disable=SC2046
"$cc" -o eleven "$here/program.c" theirs-11.o $(theirs 12) -lpthread -ldl
expect "99 99 99 0" with_audit ./eleven
expect_line "^hawser: .*/eleven: its CUDA runtime is not redirected.*: it is of CUDA 11 or older"

echo shouldGoOnWithADamagedSymbolTable
# The symbol table's section says that it begins behind the file's end.
section=$(readelf -SW program | sed -n 's/^ *\[ *\([0-9]*\)\] \.symtab .*/\1/p')
start=$(readelf -hW program | sed -n 's/.*Start of section headers: *\([0-9]*\).*/\1/p')
cp program damaged
printf '\377\377\377\177' | dd of=damaged bs=1 seek=$((start + section * 64 + 24)) conv=notrunc 2>/dev/null
expect "99 99 99 0" with_audit ./damaged
expect_line "^hawser: .*/damaged: its symbol table is damaged.*: the symbol table lies outside the file"
expect "99 99 99 0" with_preload ./damaged
expect_line "its symbol table is damaged"

echo shouldSayThatTheSystemForbidsNewCode
"$cc" -o no_new_code "$here/no_new_code.c"
if ./no_new_code all /bin/true; then
    for what in all page; do
        expect "0 99 99 0" with_audit ./no_new_code $what ./late
        expect_line "^hawser: .*/late: its CUDA runtime is not redirected.*: the system forbids to change code in memory (SELinux"
    done
else
    echo "no seccomp filters: skipped"
fi

echo shouldNameAMissingLibrary
mkdir partly
cp lib/libhawser-audit.so lib/libcudart.so.12 partly/
expect "99 99 99 0" env LD_AUDIT="$work/partly/libhawser-audit.so" ./program
expect_line "/program: its CUDA runtime is not redirected.*: libcudart.so.13 is not in Hawser's folder"

echo shouldEndAProgramWhoseLibraryLacksAFunction
echo 'int cudaMalloc(void) { return 13; }' >lacking.c
"$cc" -shared -fPIC -o partly/libcudart.so.13 -Wl,-soname,libcudart.so.13 lacking.c
code=0
LD_AUDIT=$work/partly/libhawser-audit.so ./program >out 2>err || code=$?
[ "$code" = 127 ] || fail "exit $code, not 127"
# Before glibc 2.34 the dynamic linker itself ends a program when a look-up by an audit library fails.
expect_line "libcudart.so.13 has no function __cudaRegisterFatBinary: it is of another version\|undefined symbol: __cuda"
echo "all right"
