# shellcheck shell=sh disable=SC3043 # the shells of guests, busybox sh and dash, have `local`
# The POSIX part of the lanes' library: waits, the check of a broker's log, and commands inside a guest or dom0. Sourced by bash on the host
# (lane.sh), and by sh inside a machine.

# Polls the command in the further arguments until it succeeds, for at most $1 seconds. `result` is the reason of a failure.
await() { await_while "" "$@"; }

# As await, but fails at once when the process $1 has ended. The limit is $2.
await_while() {
    local await_pid="$1" await_limit="$2" await_end
    shift 2
    await_end=$(($(date +%s) + await_limit))
    until "$@"; do
        if [ -n "$await_pid" ] && ! kill -0 "$await_pid" 2> /dev/null; then
            result="process $await_pid ended before: $*${result:+: $result}"
            return 1
        fi
        if [ "$(date +%s)" -ge "$await_end" ]; then
            result="not within $await_limit s: $*${result:+: $result}"
            return 1
        fi
        sleep 0.2 # a shell cannot wait for these states otherwise
    done
}

not() { ! "$@" && result=""; }

# Fails if the file $1 has lines that report a defect of the broker or a worker, and prints these lines. A worker's lines are in its
# broker's log. The texts are the worker's for a session that a defect ended, and those of Netty and Quarkus for unhandled exceptions.
no_defects() {
    [ -r "$1" ] || { echo "there is no log $1"; return 1; }
    ! grep -i -e 'internal error' -e 'a task raised an exception' -e 'an exception was thrown by' -e 'failed, error id' "$1"
}

# --- Inside a machine.

# Runs the commands of serial port $1, for serial.sh on the host: a line is `TAG COMMAND`, the answer is the command's output and a line
# `TAG STATUS`. HELLO at the start shows each boot. Powers the machine off when the port ends.
serve_commands() {
    local tag command status
    stty -F "$1" 115200 raw -echo
    exec 3<> "$1"
    echo HELLO >&3
    while read -r tag command <&3; do
        (eval "$command") > /tmp/answer 2>&1 < /dev/null 3<&-
        status=$?
        cat /tmp/answer >&3
        # Starts a new line, even if the output does not end with one.
        printf '\n%s %d\n' "$tag" "$status" >&3
    done
    echo "init: the control port has ended"
    poweroff -f
}

# Runs a program; the counters of its sessions follow its output.
counted() {
    local status=0
    rm -f /tmp/stats
    HAWSER_STATS=/tmp/stats "$@" || status=$?
    cat /tmp/stats
    return $status
}

# Starts the program `hold` as number $1 with the further arguments, and waits until it has its session.
hold_start() {
    local files="/tmp/hold.$1"
    shift
    rm -f "$files" "$files".*
    mkfifo "$files"
    # Nothing in the background keeps the caller's output open, because QEMU's guest agent waits for its end.
    (hold "$@" < "$files" > "$files.out" 2>&1; echo $? > "$files.status") > /dev/null 2>&1 &
    sleep 3000 > "$files" 2> /dev/null &
    echo $! > "$files.open"
    await 600 hold_decided "$files"
    grep -q READY "$files.out" || { cat "$files.out"; return 1; }
}
hold_decided() { grep -q -s READY "$1.out" || [ -e "$1.status" ]; }

# Ends `hold` number $1, prints its output and returns its status.
hold_end() {
    local files="/tmp/hold.$1" status
    kill "$(cat "$files.open")"
    await 600 test -s "$files.status" || { echo "$result"; return 1; }
    cat "$files.out"
    status=$(cat "$files.status")
    rm -f "$files" "$files".*
    return "$status"
}
