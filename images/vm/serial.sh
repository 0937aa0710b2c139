# shellcheck shell=bash disable=SC2034,SC2154 # variables of the sourcing script
# Machines that take commands on a serial port: their first process calls `serve_commands` of inside.sh. Sourced by bash after lane.sh.
# The control port of machine NAME is QEMU's pipe $work/NAME.control, its console the file $work/NAME.console.

declare -A serial_in=() serial_out=() serial_rest=() serial_pid=()
serial_count=0

# Makes the pipes of machine $1, whose QEMU is process $2 if this shell has started it. Opens both ends of both pipes: so neither side
# waits for the other, and the pipes outlive reboots.
serial_open() {
    local in out
    serial_pid[$1]=${2:-}
    [ -z "${serial_in[$1]:-}" ] || return 0
    mkfifo "$work/$1.control.in" "$work/$1.control.out"
    exec {in}<> "$work/$1.control.in" {out}<> "$work/$1.control.out"
    serial_in[$1]=$in serial_out[$1]=$out serial_rest[$1]=''
}

serial_show() {
    say "the console of $1:"
    tail -n 15 "$work/$1.console" >&2 || true
    [ ! -s "$work/$1.qemu" ] || tail -n 15 "$work/$1.qemu" >&2
}

serial_die() {
    serial_show "$1"
    die "the machine $1 $2"
}

# Reads a line of machine $1 into `line`, within $2 seconds.
serial_line() {
    local name=$1 end=$((SECONDS + $2)) part
    while true; do
        if IFS= read -r -t 1 -u "${serial_out[$name]}" part; then
            line=${serial_rest[$name]}${part%$'\r'} serial_rest[$name]=''
            return 0
        fi
        serial_rest[$name]+=$part
        [ -z "${serial_pid[$name]}" ] || kill -0 "${serial_pid[$name]}" 2> /dev/null || serial_die "$name" "has ended"
        [ "$SECONDS" -lt "$end" ] || return 1
    done
}

# Waits until machine $1 has booted, within $2 seconds (600). Ignores earlier output.
serial_await_boot() {
    local line='' limit=${2:-600} end=$((SECONDS + ${2:-600}))
    until [ "$line" = HELLO ]; do
        serial_line "$1" $((end - SECONDS)) || serial_die "$1" "did not boot within $limit s"
    done
}

# Runs a command in machine $1, within $2 seconds; its output goes to the file $work/answer. Returns its status.
serial_run() {
    local name=$1 limit=$2 end=$((SECONDS + $2)) line tag
    shift 2
    serial_count=$((serial_count + 1))
    tag=answer-$$-$serial_count
    printf '%s %s\n' "$tag" "$*" >&"${serial_in[$name]}"
    : > "$work/answer"
    while true; do
        serial_line "$name" $((end - SECONDS)) || { cat "$work/answer" >&2; serial_die "$name" "did not end within $limit s: $*"; }
        case $line in
            "$tag "*) return "${line#"$tag "}" ;;
            HELLO) serial_die "$name" "rebooted during: $*" ;;
            ?*) printf '%s\n' "$line" >> "$work/answer" ;;
        esac
    done
}

# As serial_run; the command must succeed.
serial_expect() { serial_run "$@" || { result="in $1: $(cat "$work/answer")"; return 1; }; }

# Sends a command that ends machine $1, so that there is no answer.
serial_send() { printf 'nobody %s\n' "${*:2}" >&"${serial_in[$1]}"; }

# Discards the input and output of machine $1, before a stopped machine starts again.
serial_forget() {
    local rest
    while IFS= read -r -t 0.01 -u "${serial_out[$1]}" rest; do :; done
    while IFS= read -r -t 0.01 -u "${serial_in[$1]}" rest; do :; done
    serial_rest[$1]=''
}
