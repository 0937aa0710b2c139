# shellcheck shell=bash disable=SC2034,SC2154 # variables of the sourcing script
# Shell functions of appliance/demo, appliance/benchmark, the build and the lanes: building missing parts, starting a broker. Sourced by
# bash; the sourcing script sets `root` and `me`. They read JSON without jq, because build and demo do not need it.

# shellcheck source=appliance/lanes/inside.sh
. "$root/appliance/lanes/inside.sh"

say() { printf '%s\n' "$*" >&2; }
die() { say "$me: $*"; exit 1; }

launcher=$root/host-broker/broker/src/main/sh/hawser-broker
broker_jar=$root/host-broker/broker/target/quarkus-app/quarkus-run.jar
worker_dir=$root/host-broker/worker/target/app
libraries=$root/guest-agent/interposer/target/lib
bin=$root/appliance/programs/target/bin
hawserd_app=$root/appliance/libvirt/hawserd/target/app
hawserd=$root/appliance/libvirt/hawserd/src/main/sh/hawserd
hawserctl=$root/appliance/hawserctl/src/main/sh/hawserctl
stamp=$root/appliance/target/built-from

# Identifies the sources by the commit and all differences from it; without git by the newest source file.
sources_state() {
    if git -C "$root" rev-parse HEAD >/dev/null 2>&1; then
        { git -C "$root" rev-parse HEAD
          git -C "$root" diff HEAD
          git -C "$root" ls-files -z --others --exclude-standard | (cd "$root" && xargs -0 -r cksum); } | cksum
    else
        find "$root" -name target -prune -o -type f -newer "$root/pom.xml" -print0 | sort -z | xargs -0 -r cksum | cksum
    fi
}

# Runs Maven; prints one line per module, with the whole output in a file.
build_all() {
    local log=$root/appliance/target/build.log state=$1
    mkdir -p "$root/appliance/target"
    say "$me: building (output in $log); the first time takes a few minutes"
    local start=$SECONDS
    if ! "$root/mvnw" -B verify -DskipTests -Dcheckstyle.skip -pl appliance/programs,appliance/check,host-broker/broker \
            -pl host-broker/worker,appliance/libvirt/hawserd -am 2>&1 | tee "$log" | sed -un 's/^\[INFO\] Building \(Hawser[^[]*[^ [0-9]\).*\[\(.*\)\]$/  [\2] \1/p' >&2; then
        grep -m 5 'ERROR' "$log" >&2 || true
        die "the build failed; its output is in $log"
    fi
    say "$me: built in $((SECONDS - start)) s"
    printf '%s\n' "$state" > "$stamp"
}

# Builds unless a build of the present sources exists; the argument "0" only checks that a build exists.
ensure_built() {
    local state
    if [ "$1" = 1 ]; then
        state=$(sources_state)
        if ! is_built || [ "$(cat "$stamp" 2>/dev/null)" != "$state" ]; then
            build_all "$state"
        fi
    fi
    is_built || die "a part is not built: run ./mvnw verify, or this without --no-build"
}

is_built() {
    [ -e "$broker_jar" ] && [ -d "$worker_dir" ] && [ -e "$libraries/libcuda.so.1" ] && [ -x "$bin/hawser_benchmark" ] &&
        [ -d "$root/appliance/check/target/app" ] && [ -d "$hawserd_app" ]
}

# Starts a broker with its state in folder $1 and the further arguments as JVM flags; sets broker_pid, guest and http. Its log is
# $1.log, which must report no defect of an earlier broker.
start_broker() {
    local state_dir=$1 result=''
    shift
    [ ! -e "$state_dir.log" ] || no_defects "$state_dir.log" >&2 || die "the broker's log reports a defect"
    "$launcher" -Dhawser.listen.port=0 -Dhawser.http.port=0 -Dhawser.state-dir="$state_dir" \
        -Dhawser.worker.start-timeout=240s "$@" \
        > "$state_dir.log" 2>&1 < /dev/null &
    broker_pid=$!
    await_while "$broker_pid" 300 test -s "$state_dir/endpoints.json" ||
        { tail -n 20 "$state_dir.log" >&2; die "the broker did not start: $result"; }
    guest=$(endpoint guest "$state_dir")
    http=$(endpoint http "$state_dir")
}

# Prints the address of kind $1 (guest, guestTls, http) of the broker with the state folder $2.
endpoint() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$2/endpoints.json"; }

stop_broker() {
    [ -n "${broker_pid:-}" ] || return 0
    kill "$broker_pid" 2>/dev/null || true
    wait "$broker_pid" 2>/dev/null || true
    broker_pid=
}

# Chooses an unused region of at most $1 MiB, and sets `region` to its file and `region_flags` to the broker's flags for it.
# A full /dev/shm, which is small in containers, is noticed only on access, by a fatal signal.
choose_region() {
    local usable
    usable=$(df --output=avail --block-size=1M /dev/shm | tail -n 1)
    region=/dev/shm/hawser-$me-$$
    region_mib=$(($1 < usable / 2 ? $1 : usable / 2))
    region_flags=(-Dhawser.regions.local.path="$region" -Dhawser.regions.local.size="$((region_mib << 20))"
        -Dhawser.regions.local.vgpu=default)
}

# Runs a command over carrier $1 as a guest of the broker whose state is in folder $2, with a clean environment; $3 is the file for its
# counters.
as_guest() {
    local carrier=$1 state_dir=$2 statistics=$3 way
    shift 3
    case $carrier in
        tcp) way=(HAWSER_BROKER="$guest" HAWSER_TOKEN_FILE="$state_dir/default.token") ;;
        shm) way=(HAWSER_REGION="$region") ;;
        *) die "no such carrier: $carrier" ;;
    esac
    env -i PATH="$PATH" HOME="${HOME:-/}" LD_LIBRARY_PATH="$libraries" HAWSER_CARRIER="$carrier" "${way[@]}" \
        HAWSER_CONFIG=/dev/null HAWSER_CONNECT_TIMEOUT_MS=600000 HAWSER_STATS="$statistics" "$@"
}

# Prints the body of the REST interface's answer to GET $2, with the token of the state folder $1. Needs only bash, not curl.
rest_get() {
    local address=${http#http://}
    (
        exec 8<> "/dev/tcp/${address%:*}/${address##*:}"
        printf 'GET %s HTTP/1.0\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n' "$2" "$address" \
            "$(cat "$1/admin.token")" >&8
        sed '1,/^\r$/d' <&8
    )
}

# Lists the children of a process, one per line.
children_of() {
    local status
    for status in /proc/[0-9]*/status; do
        if [ "$(sed -n 's/^PPid:[[:space:]]*//p' "$status" 2>/dev/null)" = "$1" ]; then
            status=${status#/proc/}
            printf '%s\n' "${status%/status}"
        fi
    done
}

# Prints the first child of a process. Reads all lines, because a writer into a closed pipe fails, and so would the caller.
child_of() { children_of "$1" | sed -n 1p; }
