# The tables of appliance/benchmark from the figures in $work/all.json. Sourced by it.

# The part of the figures that belongs to a carrier.
part() { sed -n "/^\"$1\": {/,/^}/p" "$work/all.json"; }
# The first number with this name in the input.
value() { sed -n "s/.*\"$1\": \\([-0-9.]*\\).*/\\1/p" | head -n 1; }
row() { printf '%-52s %12s %12s %7s  %s\n' "$@"; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.2f", a / b; else printf "-" }'; }
size() { if [ "$1" -ge 1048576 ]; then echo "$(($1 / 1048576)) MiB"; else echo "$(($1 / 1024)) KiB"; fi; }

show_carrier() {
    local carrier=$1 figures limit name label target copies
    figures=$(part "$carrier")
    case $carrier in
        tcp) row "tcp" Hawser "plain socket" ratio target ;;
        shm) row "shm" Hawser "limit" ratio target ;;
    esac
    limit=$(value limit <<< "$figures")
    while IFS='|' read -r name label; do
        case $carrier:$name in
            tcp:*) target="<= plain + 10 us" ;;
            shm:synchronize) target="<= 3 us; the limit is a ping-pong of two threads" ;;
            shm:*) target="<= native + 3 us" ;;
        esac
        row "$label" "$(value "$name" <<< "$figures")" "$limit" "$(ratio "$(value "$name" <<< "$figures")" "$limit")" "$target"
    done <<'LABELS'
synchronize|round trip, synchronise (us)
copy64Out|64 bytes from the device (us)
copy64In|64 bytes to the device and synchronise (us)
launchSynchronize|launch and synchronise (us)
LABELS
    row "asynchronous calls, event records a second" "$(value eventRecordsPerSecond <<< "$figures")" - - \
        "$([ "$carrier" = tcp ] || echo ">= 2000000")"
    row "asynchronous calls, launches a second" "$(value launchesPerSecond <<< "$figures")" - - ""
    row "cost of an asynchronous launch in the guest (ns)" "$(value launchStubNs <<< "$figures")" - - "<= native"
    local bytes pageable_in pageable_out pinned_in pinned_out limit_in limit_out threads what
    copies='s/.*"bytes": \([0-9]*\), "pageableInMBps": \([0-9]*\), "pageableOutMBps": \([0-9]*\), "pinnedInMBps": \([0-9]*\), '
    copies+='"pinnedOutMBps": \([0-9]*\), "limitInMBps": \([0-9]*\), "limitOutMBps": \([0-9]*\), "limitThreads": \([0-9]*\).*'
    copies+='/\1 \2 \3 \4 \5 \6 \7 \8/p'
    while read -r bytes pageable_in pageable_out pinned_in pinned_out limit_in limit_out threads; do
        target=">= 0.9"
        what=
        [ "$carrier" = tcp ] || what="; the limit is memcpy with $threads thread$([ "$threads" = 1 ] || echo s)"
        row "pageable, $(size "$bytes") to the device (MB/s)" "$pageable_in" "$limit_in" "$(ratio "$pageable_in" "$limit_in")" "$target$what"
        row "pageable, $(size "$bytes") from the device (MB/s)" "$pageable_out" "$limit_out" "$(ratio "$pageable_out" "$limit_out")" "$target"
        [ "$carrier" = tcp ] || target=">= 0.98 of native"
        row "pinned, $(size "$bytes") to the device (MB/s)" "$pinned_in" "$limit_in" "$(ratio "$pinned_in" "$limit_in")" "$target"
        row "pinned, $(size "$bytes") from the device (MB/s)" "$pinned_out" "$limit_out" "$(ratio "$pinned_out" "$limit_out")" "$target"
    done < <(sed -n "$copies" <<< "$figures")
    row "first kernel, worker ready (ms)" "$(value firstKernelReadyWorkerMs <<< "$figures")" - - ""
    if [ "$crowd" = 1 ]; then
        local sessions
        sessions=$(value sessions <<< "$figures")
        row "$sessions idle sessions: broker (% of a core)" "$(value brokerPercentOfCore <<< "$figures")" - - "<= 1"
        row "$sessions idle sessions: all workers (% of a core)" "$(value workersPercentOfCore <<< "$figures")" - - ""
        row "$sessions idle sessions: all guests (% of a core)" "$(value guestsPercentOfCore <<< "$figures")" - - ""
        printf '\n%-24s %28s %28s %28s\n' "$carrier, guests at once" "round trips/s" "launches/s" "pageable copies MB/s"
        sed -n 's/.*{"guests": \([0-9]*\), [^{]*{"sum": \([0-9]*\), "slowestToFastest": \([0-9.]*\)}[^{]*{"sum": \([0-9]*\), "slowestToFastest": \([0-9.]*\)}[^{]*{"sum": \([0-9]*\), "slowestToFastest": \([0-9.]*\)}.*/\1 \2 \3 \4 \5 \6 \7/p' \
            <<< "$figures" | while read -r guests trips trips_ratio launches launches_ratio rate rate_ratio; do
            printf '%-24s %28s %28s %28s\n' "$guests" "$trips (slowest $trips_ratio)" "$launches (slowest $launches_ratio)" \
                "$rate (slowest $rate_ratio)"
        done
    fi
    echo
}

printf 'device: %s; %s cores, which guest, broker, worker and the limits share\n\n' \
    "$(sed -n 's/.*"device": "\(.*\)",/\1/p' "$work/all.json" | head -n 1)" "$(nproc)"
for carrier in "${carriers[@]}"; do
    show_carrier "$carrier"
done
row "without a carrier's part" Hawser "" "" target
row "first kernel, no worker ready (ms)" "$(value firstKernelNoWorkerMs < "$work/all.json")" - - ""
row "memory of the idle broker (MiB)" "$(value broker < "$work/all.json")" - - "<= 250"
row "memory of a ready worker (MiB)" "$(value idleWorker < "$work/all.json")" - - ""
