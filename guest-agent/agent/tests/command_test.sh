#!/bin/sh
# Tests the command from the outside: exit codes, and that `hawser run` puts our libraries before an RPATH and before
# dlopen by path. Arguments: hawser, the folder of the guest libraries, a folder for files, a C compiler.
set -eu
hawser=$1 work=$3/command-test cc=$4
rm -rf "$work"
mkdir -p "$work/nvidia"
cd "$work"
unset HAWSER_BROKER HAWSER_TOKEN HAWSER_TOKEN_FILE HAWSER_REGION HAWSER_CARRIER LD_AUDIT LD_LIBRARY_PATH
export HAWSER_CONFIG=/dev/null HAWSER_SYSFS=/nonexistent

fail() { echo "FAIL: $*" >&2; exit 1; }
expect() { # expect CODE COMMAND...
    wanted=$1; shift
    code=0
    "$@" >out 2>err || code=$?
    [ "$code" = "$wanted" ] || { cat out err >&2; fail "exit $code, wanted $wanted: $*"; }
}

# A stand-in for a program's own runtime, under the usual name and as auditwheel renames it.
echo 'int cudaGetDeviceCount(int *count) { *count = 99; return 0; }' >theirs.c
"$cc" -shared -fPIC -o nvidia/libcudart.so.13 -Wl,-soname,libcudart.so.13 theirs.c
cp nvidia/libcudart.so.13 nvidia/libcudart.faf08d9a.so.13
cp nvidia/libcudart.so.13 nvidia/libcudart_other.so.13
cat >linked.c <<'C'
int cudaGetDeviceCount(int *count);
int main(void) { int count = 0; return cudaGetDeviceCount(&count) == 0 ? count : 1; }
C
"$cc" -o linked linked.c nvidia/libcudart.so.13 -Wl,--disable-new-dtags,-rpath,"$work/nvidia"
cat >opened.c <<'C'
#include <dlfcn.h>
int main(int argc, char **argv) {
    void *library = dlopen(argv[argc - 1], RTLD_NOW);
    int (*count_devices)(int *) = library ? (int (*)(int *)) dlsym(library, "cudaGetDeviceCount") : 0;
    int count = 0;
    return !count_devices ? 2 : count_devices(&count) == 0 ? count : 1;
}
C
"$cc" -o opened opened.c -ldl

# 99: their runtime answered. 1: ours answered, which finds no vGPU.
expect 99 ./linked
expect 1 "$hawser" run ./linked
expect 99 ./opened "$work/nvidia/libcudart.faf08d9a.so.13"
expect 1 "$hawser" run ./opened "$work/nvidia/libcudart.faf08d9a.so.13"
expect 1 "$hawser" run -- ./opened "$work/nvidia/libcudart.so.13"
expect 99 "$hawser" run ./opened "$work/nvidia/libcudart_other.so.13" # not a name that we replace
expect 1 "$hawser" run sh -c './linked' # children too

# A wheel's library needs a renamed copy with versions of names, and the program has loaded our runtime before.
echo 'libcudart.so.13 { cudaGetDeviceCount; };' >versions
"$cc" -shared -fPIC -o nvidia/libcudart.0badcafe.so.13 -Wl,-soname,libcudart.0badcafe.so.13 \
    -Wl,--version-script,versions theirs.c
echo 'int cudaGetDeviceCount(int *count); int both(int *count) { return cudaGetDeviceCount(count); }' >extension.c
"$cc" -shared -fPIC -o extension.so extension.c nvidia/libcudart.0badcafe.so.13 -Wl,-rpath,"$work/nvidia"
cat >extended.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
int cudaGetDeviceCount(int *count);
int main(int argc, char **argv) {
    int first = 0, count = 0;
    cudaGetDeviceCount(&first);
    void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : 0;
    int (*both)(int *) = library ? (int (*)(int *)) dlsym(library, "both") : 0;
    if (!both) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    return both(&count) == 0 ? count : 1;
}
C
"$cc" -o extended extended.c nvidia/libcudart.so.13 -ldl -Wl,--disable-new-dtags,-rpath,"$work/nvidia"
expect 99 ./extended "$work/extension.so"
expect 1 "$hawser" run ./extended "$work/extension.so"

# Math libraries, by path and as a wheel's program finds them. 99: theirs answered. 13 and 12: ours of that toolkit.
cat >math.c <<'C'
#include <dlfcn.h>
#include <stddef.h>
int main(int argc, char **argv) {
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    size_t (*version)(void) = library ? (size_t (*)(void)) dlsym(library, argv[2]) : 0;
    return !version ? 2 : version() == 99 ? 99 : (int) (version() / 1000);
}
C
"$cc" -o math math.c -ldl
echo '#include <stddef.h>
size_t cublasGetCudartVersion(void) { return 99; }
size_t cublasLtGetCudartVersion(void) { return 99; }' >theirs_math.c
for name in libcublas.so.13 libcublas-1a2b3c4d.so.12 libcublasLt.so.13 libcublasLt.0badf00d.so.12.9.1; do
    "$cc" -shared -fPIC -o "nvidia/$name" theirs_math.c
    function=cublasGetCudartVersion
    case $name in libcublasLt*) function=cublasLtGetCudartVersion ;; esac
    case $name in *.so.13*) major=13 ;; *) major=12 ;; esac
    expect 99 ./math "$work/nvidia/$name" $function
    expect $major "$hawser" run ./math "$work/nvidia/$name" $function
done
cp nvidia/libcublas.so.13 nvidia/libcublasMp.so.13
cp nvidia/libcublas.so.13 nvidia/libcublas.so.11
expect 99 "$hawser" run ./math "$work/nvidia/libcublasMp.so.13" cublasGetCudartVersion # another library
expect 99 "$hawser" run ./math "$work/nvidia/libcublas.so.11" cublasGetCudartVersion   # a version that we lack
expect 127 "$hawser" run no-such-program-anywhere
expect 126 "$hawser" run "$work"
expect 2 "$hawser" run
expect 2 "$hawser" nonsense
expect 0 "$hawser" --help
expect 0 "$hawser" --version

# Without a broker: one line, no hang, no success.
expect 1 "$hawser" smi
grep -q "no vGPU" err || fail "smi does not report that there is no vGPU"
expect 2 "$hawser" smi --loop 0
expect 2 "$hawser" smi -lms 0
expect 1 "$hawser" smi -L
expect 1 "$hawser" smi dmon -c 1
expect 1 "$hawser" smi --query-gpu=name --format=csv
expect 1 "$hawser" smi --query-gpu=name               # CSV without --format
expect 2 "$hawser" smi --query-gpu=name --format=xml
expect 2 "$hawser" smi -x
expect 2 "$hawser" smi pmon
expect 0 "$hawser" smi --help-query-gpu
grep -q '^"memory.used"$' out || fail "no list of fields: $(cat out)"

# The name nvidia-smi: a link of ours comes and goes, and a file of NVIDIA's stays.
mkdir -p named/usr/bin
expect 1 "$hawser" nvidia-smi status --root named
expect 0 "$hawser" nvidia-smi on --root named
expect 0 "$hawser" nvidia-smi on --root named
expect 0 "$hawser" nvidia-smi status --root named
expect 9 named/usr/bin/nvidia-smi -L
grep -q "couldn't communicate with the NVIDIA driver" out || fail "nvidia-smi reports no missing driver: $(cat out)"
expect 0 "$hawser" nvidia-smi off --root named
[ ! -e named/usr/bin/nvidia-smi ] || fail "the link is left"
expect 0 "$hawser" nvidia-smi off --root named
echo theirs >named/usr/bin/nvidia-smi
expect 1 "$hawser" nvidia-smi on --root named
expect 1 "$hawser" nvidia-smi status --root named
expect 0 "$hawser" nvidia-smi off --root named
grep -q '^theirs$' named/usr/bin/nvidia-smi || fail "a file of NVIDIA's has changed"
ln -sf /opt/nvidia/nvidia-smi named/usr/bin/nvidia-smi
expect 1 "$hawser" nvidia-smi on --root named
expect 0 "$hawser" nvidia-smi off --root named
[ -L named/usr/bin/nvidia-smi ] || fail "a link of NVIDIA's has gone"
expect 2 "$hawser" nvidia-smi perhaps
expect 1 env HAWSER_LIBRARY_DIR=/nonexistent "$hawser" doctor
expect 1 "$hawser" doctor ./linked
grep -q "^ok   libcudart.so.13: ours" out || fail "doctor does not report that run takes ours: $(cat out)"
grep -q "^note .*looks for libraries in $work/nvidia first" out || fail "doctor does not name the RPATH: $(cat out)"
expect 1 env HAWSER_BROKER=127.0.0.1:1 HAWSER_TOKEN=a.b "$hawser" doctor
grep -q "^FAIL TCP: " out || fail "doctor does not name the broker: $(cat out)"
grep -q "managed memory: by " out || fail "doctor does not tell how managed memory works: $(cat out)"

# Device code that is registered with no shared runtime: a static runtime.
cat >static.c <<'C'
__attribute__((section(".nv_fatbin"), used)) static const char code[8] = "x";
int main(void) { return 0; }
C
"$cc" -o static static.c
expect 1 "$hawser" doctor ./static
grep -q "^FAIL ./static: a CUDA runtime is linked into it statically, and the file is stripped: link it" out \
    || fail "stripped runtime not seen: $(cat out)"
cat >symbols.c <<'C'
__attribute__((visibility("hidden"))) int cudaMalloc(void) { return 0; }
#define VERSION(name) __attribute__((visibility("hidden"))) int name(void) { return 0; }
VERSION(NAME)
int main(void) { return 0; }
C
"$cc" -DNAME=cudaLogsCurrent -o thirteen symbols.c
expect 1 "$hawser" doctor ./thirteen
grep -q "^ok   ./thirteen: a CUDA 13 runtime is linked into it statically, with symbols: .hawser run. redirects it" out \
    || fail "static runtime not seen: $(cat out)"
"$cc" -DNAME=cudaGetDeviceProperties_v2 -o twelve symbols.c
expect 1 "$hawser" doctor ./twelve
grep -q "^ok   ./twelve: a CUDA 12 runtime" out || fail "runtime of CUDA 12 not seen: $(cat out)"
"$cc" -DNAME=cudaBindTexture -o eleven symbols.c
expect 1 "$hawser" doctor ./eleven
grep -q "^FAIL ./eleven: a runtime of CUDA 11 or older" out || fail "runtime of CUDA 11 not seen: $(cat out)"
echo "int cufftCreate(void) { return 0; }" >cufft.c
"$cc" -shared -fPIC -o nvidia/libcufft.so.12 -Wl,-soname,libcufft.so.12 cufft.c
echo 'int cufftCreate(void); int main(void) { return cufftCreate(); }' >fft.c
"$cc" -o fft fft.c nvidia/libcufft.so.12 -Wl,-rpath,"$work/nvidia"
expect 1 "$hawser" doctor ./fft
grep -q "^ok   libcufft.so.12: ours" out || fail "doctor does not report our cuFFT: $(cat out)"
echo "int cusparseLtInit(void) { return 0; }" >cusparselt.c
"$cc" -shared -fPIC -o nvidia/libcusparseLt.so.0 -Wl,-soname,libcusparseLt.so.0 cusparselt.c
echo 'int cusparseLtInit(void); int main(void) { return cusparseLtInit(); }' >structured.c
"$cc" -o structured structured.c nvidia/libcusparseLt.so.0 -Wl,-rpath,"$work/nvidia"
expect 1 "$hawser" doctor ./structured
grep -q "^ok   libcusparseLt.so.0: ours" out || fail "doctor does not report our cuSPARSELt: $(cat out)"
echo "int nvjpegCreateSimple(void) { return 0; }" >nvjpeg.c
"$cc" -shared -fPIC -o nvidia/libnvjpeg.so.13 -Wl,-soname,libnvjpeg.so.13 nvjpeg.c
echo 'int nvjpegCreateSimple(void); int main(void) { return nvjpegCreateSimple(); }' >pictures.c
"$cc" -o pictures pictures.c nvidia/libnvjpeg.so.13 -Wl,-rpath,"$work/nvidia"
expect 1 "$hawser" doctor ./pictures
grep -q "^FAIL libnvjpeg.so.13: Hawser does not serve" out || fail "nvJPEG not seen: $(cat out)"
# With arguments, the program runs, and each library of wheels that it would load is named with its version.
site=$work/lib/python3/site-packages
mkdir -p "$site/nvidia/cu13/lib" "$site/nvidia_cublas-13.1.0.3.dist-info" "$site/torch/lib"
echo 'int cublasCreate_v2(void *handle) { return handle == 0; }' >cublas.c
"$cc" -shared -fPIC -o "$site/nvidia/cu13/lib/libcublas.so.13" -Wl,-soname,libcublas.so.13 cublas.c
echo 'nvidia/cu13/lib/libcublas.so.13,sha256=a,1' >"$site/nvidia_cublas-13.1.0.3.dist-info/RECORD"
cp nvidia/libnvjpeg.so.13 "$site/nvidia/cu13/lib/"
echo 'int cublasCreate_v2(void *handle); int torch(void) { return cublasCreate_v2(0) == 0; }' >torch.c
"$cc" -shared -fPIC -o "$site/torch/lib/libtorch.so" torch.c "$site/nvidia/cu13/lib/libcublas.so.13" \
    "$site/nvidia/cu13/lib/libnvjpeg.so.13" -Wl,--no-as-needed -Wl,-rpath,"\$ORIGIN/../../nvidia/cu13/lib"
cat >python.c <<'C'
#include <dlfcn.h>
int main(int argc, char **argv) { return argc == 3 && dlopen(argv[2], RTLD_NOW) != 0 ? 0 : 3; }
C
"$cc" -o python python.c -ldl
export HAWSER_TOKEN=a.b
expect 1 "$hawser" doctor ./python -c "$site/torch/lib/libtorch.so"
grep -q "note running" out && fail "doctor runs a program although there is a problem: $(cat out)"
LISTED=$work/listed
: >"$LISTED"
expect 0 env HAWSER_LIBRARY_LIST="$LISTED" "$hawser" run ./python -c "$site/torch/lib/libtorch.so"
grep -q "^replaced	libcublas.so.13	libcublas.so.13	$site/torch/lib/libtorch.so\$" "$LISTED" \
    || fail "the list lacks the replaced library: $(cat "$LISTED")"
grep -q "^loaded	$site/torch/lib/libtorch.so\$" "$LISTED" || fail "the list lacks a library: $(cat "$LISTED")"
unset HAWSER_TOKEN
# A library with much static thread memory, as allocators have it: the dynamic linker needs room for it under LD_AUDIT.
echo 'static __thread char kept[4000] __attribute__((tls_model("initial-exec"))); char *keep(void) { return kept; }' \
    >thread.c
"$cc" -shared -fPIC -o libthread.so thread.c
echo 'char *keep(void); int main(void) { return keep()[0]; }' >threaded.c
"$cc" -o threaded threaded.c ./libthread.so
expect 0 ./threaded
expect 0 "$hawser" run ./threaded
expect 0 env GLIBC_TUNABLES=glibc.malloc.check=0 "$hawser" run ./threaded
chosen=glibc.malloc.check=0:glibc.rtld.optional_static_tls=8192 # the user's size stays
expect 0 env GLIBC_TUNABLES="$chosen" "$hawser" run printenv GLIBC_TUNABLES
[ "$(cat out)" = "$chosen" ] || fail "hawser run changes the user's tunables: $(cat out)"
echo '#!/bin/sh' >script; chmod +x script
expect 1 "$hawser" doctor ./script
grep -q "^note .*a script for /bin/sh" out || fail "script not seen: $(cat out)"
"$hawser" doctor ./no-such-program >out && fail "doctor accepts a missing program" || true
grep -q "^FAIL ./no-such-program: there is no such program" out || fail "missing program not seen"
# The hypervisor's settings: setup applies all or none, and doctor reads them as every program does.
root=$work/root
settings=$root/sys/firmware/qemu_fw_cfg/by_name/opt/io.hawser/guest.toml
mkdir -p "$settings" "$root/run"
expect 0 "$hawser" setup --root "$root"
grep -q "gives no settings" out || fail "setup does not report that there are no settings: $(cat out)"
[ ! -e "$root/run/hawser/guest.toml" ] || fail "setup has written settings without a source"
printf '[guest]\nbroker = "127.0.0.1:1"\ntoken = "%0398d."\n' 0 >"$settings/raw"
expect 0 "$hawser" setup --root "$root" --print
grep -q ca.pem out && fail "hiding the secret of a long token changes other settings: $(cat out)"
cat >"$settings/raw" <<'T'
[guest]
broker = "tls://127.0.0.1:1"
token = "key.hidden"
ca = """
-----BEGIN CERTIFICATE-----
AAAA
-----END CERTIFICATE-----
"""
T
expect 0 "$hawser" setup --root "$root" --print
grep -q 'token = "key.\*\*\*"' out || fail "setup --print shows no token without its secret: $(cat out)"
[ ! -e "$root/run/hawser/guest.toml" ] || fail "setup --print has written"
expect 0 "$hawser" setup --root "$root"
grep -q hidden out && fail "setup shows a secret"
grep -q '^ca_file = "/run/hawser/ca.pem"$' "$root/run/hawser/guest.toml" || fail "no ca_file: $(cat "$root"/run/hawser/*)"
[ "$(sed -n 2p "$root/run/hawser/ca.pem")" = AAAA ] || fail "ca.pem is not what was given"
[ "$(stat -c %a "$root/run/hawser/guest.toml" "$root/run/hawser/ca.pem" | sort -u)" = 644 ] || fail "modes"
expect 1 env HAWSER_CONFIG="$root/run/hawser/guest.toml" "$hawser" doctor
grep -q "^FAIL TCP: no connection to the broker 127.0.0.1:1: " out || fail "doctor does not use the settings: $(cat out)"
cp "$root/run/hawser/guest.toml" before
printf '[guest]\nbroker = "a:0"\ntoken = "a.b"\n' >"$settings/raw"
expect 1 "$hawser" setup --root "$root"
grep -q "a broker must read host:port" err || fail "setup does not report the error: $(cat err)"
cmp -s before "$root/run/hawser/guest.toml" || fail "refused settings have changed the file"
[ -z "$(find "$root/run/hawser" -name '*.new')" ] || fail "refused settings have left a file"
printf '[guest]\nbroker = "tls://a:1, b:2"\ntoken = "a.b"\n' >"$settings/raw"
expect 1 "$hawser" setup --root "$root"
grep -q "must all have tls://, or none" err || fail "setup takes a list with and without TLS: $(cat err)"
printf '[guest]\nbroker = "127.0.0.1:1, 127.0.0.1:2"\ntoken = "a.b"\n' >"$settings/raw"
expect 0 "$hawser" setup --root "$root"
grep -q "guest.toml: broker 127.0.0.1:1, 127.0.0.1:2, by QEMU" out || fail "setup does not report the list: $(cat out)"
expect 1 env HAWSER_CONFIG="$root/run/hawser/guest.toml" "$hawser" doctor
grep -q "^FAIL TCP: no connection to the broker 127.0.0.1:1: .*; no connection to the broker 127.0.0.1:2: " out ||
    fail "doctor does not try each broker of a list: $(cat out)"
[ "$(ls "$root/run/hawser")" = guest.toml ] || fail "files of settings that are not valid any more: $(ls "$root/run/hawser")"
rm "$settings/raw"
expect 0 "$hawser" setup --root "$root"
[ -z "$(ls "$root/run/hawser")" ] || fail "removed settings have stayed"
echo "# by hand" >"$root/run/hawser/guest.toml"
expect 0 "$hawser" setup --root "$root"
[ -e "$root/run/hawser/guest.toml" ] || fail "setup has removed a file that it has not written"
expect 2 "$hawser" setup --nonsense
expect 2 "$hawser" libraries
expect 2 "$hawser" libraries sideways
expect 1 "$hawser" libraries on --root /nonexistent
expect 1 "$hawser" libraries on --nonsense
# /etc/ld.so.preload: other entries stay, and the file goes with its last entry.
expect 2 "$hawser" preload
expect 2 "$hawser" preload sideways
expect 1 "$hawser" preload on --root /nonexistent
system=$work/system
mkdir -p "$system/etc" "$system/usr/lib/hawser/guest"
cp "$2"/libhawser-*.so "$2/libcuda.so.1" "$system/usr/lib/hawser/guest/"
list=$system/etc/ld.so.preload
preload() { env HAWSER_LIBRARY_DIR="$system/usr/lib/hawser/guest" "$hawser" preload "$@" --root "$system"; }
if [ "$(id -u)" = 0 ]; then
    chmod -R go-w "$system"
    expect 1 preload status
    expect 0 preload off
    [ ! -e "$list" ] || fail "preload off has made a file"
    expect 0 preload on
    expect 0 preload on
    [ "$(cat "$list")" = /usr/lib/hawser/guest/libhawser-preload.so ] || fail "preload on: $(cat "$list")"
    expect 0 preload status
    printf '/lib/one.so:/old/libhawser-preload.so /lib/two.so' >"$list"
    expect 0 preload on
    [ "$(cat "$list")" = "/lib/one.so:/lib/two.so
/usr/lib/hawser/guest/libhawser-preload.so" ] || fail "other entries: $(cat "$list")"
    expect 0 preload off
    [ "$(cat "$list")" = /lib/one.so:/lib/two.so ] || fail "preload off: $(cat "$list")"
    expect 1 preload status
    echo /usr/lib/hawser/guest/libhawser-preload.so >"$list"
    expect 0 preload off
    [ ! -e "$list" ] || fail "an empty list is left"
    chmod g+w "$system/usr/lib/hawser/guest"
    expect 1 preload on
    grep -q "must belong to root and be writable only by root" err || fail "a folder of others is taken: $(cat err)"
    head -c 70000 /dev/zero >"$list"
    expect 1 preload status
    grep -q "has more than 65536 bytes" err || fail "a long list is read: $(cat err)"
else
    echo "hawser preload is tested as root only: skipped"
fi
echo "all right"
