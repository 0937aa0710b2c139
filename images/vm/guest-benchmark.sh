# shellcheck shell=bash disable=SC2154
# The measurements of `images/vm/guest-test --benchmark`, with its functions; images/vm-benchmark runs them.

# Prints the duration of the command "$@" in seconds.
seconds_of() {
    local start=$EPOCHREALTIME
    "$@" > "$work/timed.out" 2>&1 || die "$*: ${result:-} $(cat "$work/timed.out")"
    awk -v us=$((${EPOCHREALTIME/./} - ${start/./})) 'BEGIN { printf "%.3f\n", us / 1000000 }'
}

# Prints median, minimum and maximum of the numbers on standard input, one per line, times $1.
summary() {
    sort -n | awk -v factor="$1" '{ v[NR] = $1 * factor } END { printf "%.4g (%.4g to %.4g, %d times)", v[int((NR + 1) / 2)], v[1], v[NR], NR }'
}

# Prints the table's line $1: statistics of the seconds that the command $3... prints, times $2.
row() {
    local label=$1 factor=$2 figure
    shift 2
    figure=$("$@" | summary "$factor")
    printf '%-46s %s\n' "$label" "$figure"
}

# Measures the start of a paused domain, $2 times.
starts() {
    local i
    for ((i = 0; i < $2; i++)); do
        seconds_of v start --paused "$1"
        v destroy "$1" > /dev/null
    done
}

first_kernels() {
    local i
    for ((i = 0; i < $3; i++)); do
        seconds_of boot_to_kernel "$1" "$2"
        v destroy "$1" > /dev/null
    done
}


hot_plugs() {
    local i
    for ((i = 0; i < $1; i++)); do
        seconds_of hot_plug
        hot_unplug > "$work/unplug.out" 2>&1 || die "hot-unplug: $result"
    done
}

parts="calls copies rates --max 8 --budget 250 --warm-up 500"
# Writes the figures of the output in file $1 to the file $2.
figures_of() {
    figures < "$1" > "$2"
    [ -s "$2" ] || die "hawser_benchmark printed nothing for $2: $(tail -n 3 "$1")"
}
in_guest() {
    debian_expect "$1" 400 "HAWSER_CONNECT_TIMEOUT_MS=30000 HAWSER_CARRIER=$2 hawser_benchmark $parts" || die "$result"
    figures_of "$work/answer.$1" "$3"
}
on_host() {
    # shellcheck disable=SC2086 # words
    as_guest "$1" "$work/state" "$work/statistics" "$bin/hawser_benchmark" $parts > "$work/host.out" 2>&1 || die "host: $(tail -n 3 "$work/host.out")"
    figures_of "$work/host.out" "$2"
}

measure() {
    local repeat=${HAWSER_REPEAT:-5}
    # The region's path for a process of this host.
    # shellcheck disable=SC2034 # common.sh's
    guest=127.0.0.1:7654
    debian_domain alpha "$alpha" q35 "$(metadata "name='alpha' memory='256M' region='64M'")" "$(shmem "$alpha" 64)" > "$work/alpha.xml"
    debian_domain beta "$beta" pc "" "$(network)" > "$work/beta.xml"
    define "$work/alpha.xml" || die "$result"
    define "$work/beta.xml" || die "$result"
    say "$me: booting two guests, installing the package"
    boot_both || die "$result"
    both install_package || die "$result"
    printf '%-46s %s\n' measurement "median (least to most, repetitions)"
    row "hot-plug by virsh to first kernel, pc, s" 1 hot_plugs "$repeat"
    in_guest alpha shm "$work/figures.vm-shm"
    shut_down alpha || die "$result"
    shut_down beta || die "$result"
    row "virsh start to first kernel, ivshmem, s" 1 first_kernels alpha shm 3
    row "virsh start, vGPU of 64 MiB, ms" 1000 starts alpha "$repeat"
    row "virsh start, no vGPU, with the hook, ms" 1000 starts beta "$repeat"
    rm "$work/main/etc/hooks/qemu.d/50-hawser"
    libvirt_restart
    row "virsh start, no vGPU, no hook, ms" 1000 starts beta "$repeat"
    install -m 755 "$root/appliance/hooks/50-hawser" "$work/main/etc/hooks/qemu.d/50-hawser"
    libvirt_restart
    await 600 hawserd_answers
    to_tcp || die "$result"
    in_guest beta tcp "$work/figures.vm-tcp"
    shut_down beta || die "$result"
    on_host shm "$work/figures.host-shm"
    on_host tcp "$work/figures.host-tcp"
    printf '\n%-34s %-5s %12s %12s %12s %12s\n' "hawser_benchmark" unit "VM ivshmem" "host shm" "VM TCP" "host TCP"
    awk '{ file = FILENAME; sub(/.*figures\./, "", file); key = $1; if (!(key in unit)) { unit[key] = $2; order[++n] = key }
        value[key, file] = $3 }
        END { for (i = 1; i <= n; i++) { k = order[i]; printf "%-34s %-5s %12s %12s %12s %12s\n", k, unit[k],
            value[k, "vm-shm"], value[k, "host-shm"], value[k, "vm-tcp"], value[k, "host-tcp"] } }' \
        "$work/figures.vm-shm" "$work/figures.host-shm" "$work/figures.vm-tcp" "$work/figures.host-tcp"
}
