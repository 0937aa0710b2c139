# shellcheck shell=bash disable=SC2034,SC2154 # variables of the sourcing script
# The library of the lanes. A lane is a test that needs more than ./mvnw verify: root, namespaces, virtual machines. `.ci/lanes` runs
# lanes by their names in lanes.tsv. A lane is a bash script of this shape:
#
#   . appliance/lanes/lane.sh             sets `root`, the folder of the tree
#   usage() { ...; }
#   lane_begin NAME "$@"                  reads the options --keep, --no-build and --help; a function `option` reads the lane's own
#   need_root REASON; need ip:iproute2    skip the whole lane with exit status 77 if the machine lacks a requirement
#   lane_work                             makes the folder `work` of this run; it stays after a failure and with --keep
#   lane_enter                            runs the rest of the script as the first process of private namespaces
#   step WHO WHAT COMMAND ...             runs a step and prints its number, duration and `result`; the first failed step ends the lane
#   step_skipped WHO WHAT REASON          counts a step as skipped
#   lane_end                              prints the numbers of passed and of skipped steps
#
# Exit status: 0 if no step failed and at least one passed, with the skipped steps named at the end; 77 if no step ran; else 1.
#
# A command of a step is not part of a condition, so each failing command in it ends the lane. It explains a failure, or describes a
# success, in `result`. After a failure the library prints the ends of the files in the array `lane_logs` and calls the function
# `lane_show`, except after a signal. At each end it calls `lane_cleanup`. Both functions are optional. The broker of `start_broker` and all processes of the
# namespaces end with the lane.
#
# In inside.sh: `await SECONDS COMMAND`, `await_while PID SECONDS COMMAND`, `no_defects LOG`. In ../common.sh: the build, a broker.
# In network.sh: machines in namespaces, certificates. In images/vm: virtual machines (serial.sh, vm.sh, libvirt.sh, debian.sh).
#
# The lanes `packages`, `remote` and `ansible` are shell scripts and no JUnit tests. Nearly each of their lines runs a program in another
# root folder or namespace, so Java would wrap each one in a ProcessBuilder. Their Java parts have JUnit tests (DistributionIT, TlsIT).

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
# shellcheck source=appliance/common.sh
. "$root/appliance/common.sh"
export LC_ALL=C.UTF-8 PATH=$PATH:/sbin:/usr/sbin

me=lane keep=0 build=1 result='' lane_logs=()
lane_steps=0 lane_current='' lane_skipped=() lane_complete=0 lane_inside=''

# Begins the lane $1 with the arguments of its command line. The function `option` sets `words` to the number of arguments that it has read.
lane_begin() {
    local words
    me=$1
    shift
    lane_arguments=("$@")
    while [ $# -gt 0 ]; do
        words=1
        case $1 in
            --keep) keep=1 ;;
            --no-build) build=0 ;;
            -h|--help) usage; exit 0 ;;
            *)
                words=0
                ! declare -F option > /dev/null || option "$@"
                [ "$words" -gt 0 ] || { usage >&2; exit 2; }
                ;;
        esac
        shift "$words"
    done
    trap lane_finish EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# Ends the lane as skipped, because of $*.
skip() {
    printf '%s: SKIPPED: %s\n' "$me" "$*"
    lane_result 0 0 "$*"
    exit 77
}

has() { command -v "$1" > /dev/null; }

# Skips the lane unless the machine has these programs, each as PROGRAM or PROGRAM:PACKAGE.
need() {
    local program
    for program in "$@"; do
        has "${program%%:*}" || skip "${program%%:*} is missing: install ${program##*:}"
    done
}

need_root() { [ "$(id -u)" = 0 ] || skip "root is needed: $*"; }

# Sets `package_file` to the one file of packages that matches the pattern $1.
package_file() {
    local found
    found=$(compgen -G "${packages:-$root/appliance/target/packages}/$1" || true)
    [ "$(grep -c . <<< "$found")" = 1 ] || skip "${packages:-appliance/target/packages} must have one $1: run ./mvnw package"
    package_file=$found
}

lane_is_inside() { [ -n "${HAWSER_LANE_WORK:-}" ]; }

lane_work() { work=$(mktemp -d "${TMPDIR:-/tmp}/hawser-$me.XXXXXX"); }

# Runs the lane's script again in private namespaces; only that second run continues after this function.
lane_enter() {
    local status=0
    local namespaces=(unshare --mount --net --ipc --uts --pid --fork --kill-child --mount-proc --propagation private)
    if lane_is_inside; then
        work=$HAWSER_LANE_WORK
        mount -t tmpfs -o mode=1777 tmpfs /dev/shm
        mount -t tmpfs -o mode=755 tmpfs /run
        ip link set lo up
        return
    fi
    "${namespaces[@]}" mount -t tmpfs none /run 2> /dev/null || skip "this machine permits no private namespaces"
    # In the background, because a shell handles no signal while it waits for a command.
    HAWSER_LANE_WORK=$work "${namespaces[@]}" "$(readlink -f "$0")" "${lane_arguments[@]}" &
    lane_inside=$!
    wait "$lane_inside" || status=$?
    lane_inside='' lane_complete=1
    exit "$status"
}

# The trap at the lane's exit.
lane_finish() {
    local status=$? log
    trap - EXIT
    set +e
    # Ends the alarm of a `read -t` that a signal has interrupted. Bash 5.2 would jump back into that read later, and crash.
    read -r -t 1 < /dev/null
    if [ -n "$lane_current" ] && [ "$status" -lt 129 ]; then
        status=1
    elif [ "$status" = 0 ] && [ "$lane_complete" = 0 ]; then
        result="the script ended before lane_end" status=1
    fi
    if [ "$status" != 0 ] && [ "$status" != 77 ] && [ "$lane_complete" = 0 ]; then
        for log in "${lane_logs[@]}"; do
            [ ! -s "$log" ] || { say "$me: the end of $log:"; tail -n 25 "$log" >&2; }
        done
        # After a signal the machines end at once: lane_show may wait for an answer of one, and the sender kills a lane that lingers.
        [ "$status" -ge 129 ] || ! declare -F lane_show > /dev/null || (lane_show) >&2
        say "$me: FAILED${lane_current:+ in step $((lane_steps + ${#lane_skipped[@]} + 1)), $lane_current}${result:+: $result}"
    fi
    ! declare -F lane_cleanup > /dev/null || lane_cleanup
    # Before the namespaces end, so that its workers log no errors.
    stop_broker
    if ! lane_is_inside && [ -n "${work:-}" ]; then
        # unshare ignores other signals. All processes in its namespaces end with it.
        [ -z "$lane_inside" ] || { kill -KILL "$lane_inside"; wait "$lane_inside"; } 2> /dev/null
        if [ "$keep" = 0 ] && { [ "$status" = 0 ] || [ "$status" = 77 ]; }; then
            rm -rf --one-file-system "$work"
        else
            say "$me: logs and outputs are kept in $work"
        fi
    fi
    exit "$status"
}

# Prints the seconds since the time $1 of EPOCHREALTIME, with one decimal.
seconds_since() {
    local tenths=$(((${EPOCHREALTIME/./} - ${1/./}) / 100000))
    printf '%d.%d' $((tenths / 10)) $((tenths % 10))
}

lane_line() { printf '%3d %-9s %-76s %9s  %s\n' $((lane_steps + ${#lane_skipped[@]})) "$@"; }

# Runs the command $3... as step $2 of machine or subject $1.
step() {
    local start=$EPOCHREALTIME
    lane_current="$1: $2" result=''
    "${@:3}"
    lane_steps=$((lane_steps + 1)) lane_current=''
    lane_line "$1" "$2" "$(seconds_since "$start") s" "${result:0:160}"
}

# Counts step $2 of $1 as skipped, because of $3.
step_skipped() {
    lane_skipped+=("$2")
    lane_line "$1" "$2" SKIPPED "$3"
}

# Writes the numbers of passed steps $1 and skipped steps $2, and the text $3, to the file that HAWSER_LANE_RESULT names, for .ci/lanes.
lane_result() { [ -z "${HAWSER_LANE_RESULT:-}" ] || printf '%d\t%d\t%s\n' "$@" > "$HAWSER_LANE_RESULT"; }

# Ends the lane after its last step.
lane_end() {
    local names
    [ "$lane_steps" -gt 0 ] || die "no step ran"
    names=$(printf '; %s' "${lane_skipped[@]}")
    names=${names:2}
    lane_complete=1
    printf '%s: %d steps passed in %d s%s\n' "$me" "$lane_steps" "$SECONDS" \
        "${lane_skipped[0]+, ${#lane_skipped[@]} SKIPPED: $names}"
    lane_result "$lane_steps" "${#lane_skipped[@]}" "${names:--}"
}

# --- Commands and answers.

# Runs $1..., with its output in the file $work/output; after a failure `result` is the end of the output.
quietly() {
    "$@" > "$work/output" 2>&1 < /dev/null || { result="$*: $(tail -n 20 "$work/output")"; return 1; }
}

# As quietly, but in a separate process, which ends with the first failing command of a function.
in_order() {
    ("$@") > "$work/output" 2>&1 < /dev/null &
    wait $! || { result="$*: $(tail -n 20 "$work/output")"; return 1; }
}

# Runs $2..., which must succeed; $1 says what its success means.
expect() {
    "${@:2}" || { result="not so: $1: ${*:2}${result:+: $result}"; return 1; }
}

# Prints the sessions' counters among the lines of file $1, as a program writes them to the file of HAWSER_STATS.
counters() { jq -Rc 'fromjson? | objects | select(has("carrier"))' "$1"; }

# The output of program $2 and its counters in file $1 must report success over carrier $3. The exit status was $4.
program_passed() {
    if [ "$4" != 0 ] || ! grep -q "^PASS $2: " "$1" ||
            ! counters "$1" | jq -se --arg carrier "$3" 'length > 0 and all(.carrier == $carrier)' > /dev/null; then
        result="status $4, expected success over $3: $(cat "$1")"
        return 1
    fi
    result=$(sed -n "s/^PASS $2: //p" "$1")
}

# Reads the output of hawser_benchmark and prints its figures as lines `NAME UNIT VALUE`.
figures() { jq -Rr 'fromjson? | objects | select(has("value")) | "\(.name) \(.unit) \(.value)"'; }

# --- Files of a machine.

# Copies into the folder $1 the libraries of the file $2, except Hawser's in the folder `libraries`.
put_libraries() {
    local tree=$1 file=$2 library
    while read -r library; do
        [ -e "$tree$library" ] || install -D "$library" "$tree$library"
    done < <(LD_LIBRARY_PATH=$libraries ldd "$file" 2> /dev/null |
        sed -n -e 's/^[[:space:]]*\(\/[^ ]*\) (0x.*/\1/p' -e 's/.* => \(\/[^ ]*\) (0x.*/\1/p' | grep -v -e libcuda -e libcudart)
}

# Copies the file $2 to $3 in the folder $1, with its libraries except Hawser's.
put_with_libraries() {
    install -D "$2" "$1$3"
    put_libraries "$1" "$2"
}

# --- The lane's broker.

# Starts a broker with the software GPU and the flags $@, and waits until a new guest would get a session.
lane_broker() {
    rm -f "$work/state/endpoints.json"
    start_broker "$work/state" -Dhawser.gpu.backend=software "$@"
    # In a file, because every process could read an argument.
    (umask 077; printf 'Authorization: Bearer %s\n' "$(cat "$work/state/admin.token")" > "$work/admin.header")
    await_while "$broker_pid" 600 broker_is_ready
}

# The first worker reports the GPUs; before that the broker makes no vGPU.
broker_is_ready() {
    result=$(curl -sS --max-time 300 "$http/q/health/ready" 2>&1) && jq -e '.status == "UP"' <<< "$result" > /dev/null 2>&1 && result=''
}

# Kills the broker.
kill_broker() {
    kill -KILL "$broker_pid"
    wait "$broker_pid" 2> /dev/null || true
    broker_pid=''
    rm -f "$work/state/endpoints.json"
}

# Prints the answer of the broker's REST interface to $1, with the further arguments for curl.
rest() { curl -sS --max-time 600 -H @"$work/admin.header" -H 'Content-Type: application/json' "${@:2}" "$http/api/v1/$1"; }

# Whether the answer to GET $1 satisfies jq's filter and options $2...; otherwise `result` is the answer.
rest_has() { result=$(rest "$1" -f 2>&1) && jq -e "${@:2}" <<< "$result" > /dev/null && result=''; }

has_sessions() { rest_has sessions --argjson count "$1" 'length == $count'; }
