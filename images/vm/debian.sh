# shellcheck shell=bash disable=SC2154
# Shell functions for tests in Debian guests under libvirt: their image, a second disk with the tested files, domains, and commands
# through QEMU's guest agent. Sourced by bash after libvirt.sh; the sourcing script sets `root`, `work` and `me`, and defines `say`, `die`, `skip`.

agent_limit=${agent_limit:-3000}

# Skips with a reason if a requirement is missing that libvirt_check does not check.
debian_check() {
    local program
    for program in qemu-system-x86_64:qemu-system-x86 qemu-img:qemu-utils curl:curl jq:jq; do
        command -v "${program%:*}" > /dev/null || skip "${program%:*} is missing: install ${program#*:}"
    done
}

# Makes the guest's image unless one of this recipe and this week exists; sets `guest_image`. Needs the network, so it runs before
# libvirt_private.
debian_image() {
    local key
    key=$(cat "$root/images/recipe.sh" "$root/images/guest/make" "$root"/images/guest/tree/etc/*/*/* <(date +%G-%V) | sha256sum | cut -c 1-12)
    guest_image=$root/images/target/guest-$key.img
    if [ -e "$guest_image" ] && [ -e "$guest_image.whole" ]; then
        return
    fi
    for program in mmdebstrap mke2fs:e2fsprogs; do
        command -v "${program%:*}" > /dev/null || skip "${program%:*} is missing: install ${program#*:}"
    done
    rm -f "$root"/images/target/guest-*.img*
    "$root/images/guest/make" --out "$guest_image" || die "the guest's image could not be made"
    touch "$guest_image.whole"
}

# Makes the folder $work/tree with the guests' files (the package $1, programs with their PTX) and the list $work/programs.
debian_tree() {
    local name programs=(drv_vector_add drv_large_copies drv_threads)
    mkdir -p "$work/tree/bin"
    cp "$1" "$work/tree/hawser-guest.deb"
    cp -r "$bin/ptx" "$work/tree/bin/ptx"
    for name in vector_add matrix_mul pinned_copies streams_events; do
        [ ! -x "$bin/$name" ] || programs+=("$name")
    done
    [ -x "$bin/vector_add" ] || say "$me: nvcc not found when building: only programs of the Driver API run"
    for name in "${programs[@]}" hold drv_fill_memory drv_matrix_mul hawser_benchmark; do
        cp "$bin/$name" "$work/tree/bin/"
    done
    printf '%s\n' "${programs[@]}" > "$work/programs"
    printf '%s\n' "$guest_image" > "$work/image"
}

# Makes the disk image $1 of the folder $2, which guests mount read-only.
debian_disk() {
    local mib
    mib=$(du -sm "$2" | cut -f 1)
    rm -f "$1"
    truncate -s $((mib * 5 / 4 + 16))M "$1"
    mke2fs -q -t ext4 -F -L hawser-test -O '^has_journal' -m 0 -d "$2" "$1"
}

# Prints a definition of domain $1 with UUID $2, machine type $3, metadata $4 and devices $5. Its disk is an overlay of the guest's
# image (`guest_image`); the second one is $work/test.img. `domain_memory` is in MiB (640).
debian_domain() {
    local name=$1 uuid=$2 machine=$3 metadata=$4 devices=$5 more=${6:-}
    [ -e "$work/$name.qcow2" ] || qemu-img create -q -f qcow2 -b "$guest_image" -F raw "$work/$name.qcow2" > /dev/null
    cat <<TEXT
<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'>
  <name>$name</name>
  <uuid>$uuid</uuid>
  <metadata>$metadata</metadata>
  <memory unit='MiB'>${domain_memory:-640}</memory>
  <vcpu>2</vcpu>
  <os>
    <type arch='x86_64' machine='$machine'>hvm</type>
    <kernel>$guest_image.vmlinuz</kernel>
    <initrd>$guest_image.initrd</initrd>
    <cmdline>root=LABEL=hawser-root rw console=ttyS0 panic=-1 mitigations=off random.trust_cpu=on quiet</cmdline>
  </os>
  <features><acpi/><apic/></features>
  <cpu mode='maximum'/>
  <on_reboot>restart</on_reboot>
  <devices>
    <disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='unsafe'/><source file='$work/$name.qcow2'/><target dev='vda' bus='virtio'/></disk>
    <disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='$work/test.img'/><target dev='vdb' bus='virtio'/><readonly/><shareable/></disk>
    <serial type='file'><source path='$work/$name.console' append='on'/><target port='0'/></serial>
    <channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
    <memballoon model='none'/>
    <controller type='usb' model='none'/>
$devices
  </devices>
$more
</domain>
TEXT
}

debian_show() {
    say "the console of $1:"
    tail -n 15 "$work/$1.console" >&2 || true
}

# Waits until the agent of guest $1 answers, within $2 seconds.
debian_await() {
    local name=$1 limit=${2:-$agent_limit} end=$((SECONDS + ${2:-$agent_limit}))
    until v qemu-agent-command "$name" --timeout 60 '{"execute":"guest-ping"}' > "$work/$name.agent" 2>&1; do
        [ $SECONDS -lt $end ] || { debian_show "$name"; die "the guest $name did not boot within $limit s: $(tail -n 1 "$work/$name.agent")"; }
        sleep 0.3 # virsh cannot wait for an agent
    done
}

# Runs a command line in guest $1, within $2 seconds; its output goes to the file $work/answer.$1. Returns its status.
debian_run() {
    local name=$1 limit=$2 end=$((SECONDS + $2)) pid answer
    shift 2
    : > "$work/answer.$name"
    # In base64, which needs no quoting in JSON.
    answer=$(v qemu-agent-command "$name" --timeout 300 "{\"execute\":\"guest-exec\",\"arguments\":{\"path\":\"/bin/sh\",\"arg\":[\"-c\",\
\"echo $(printf '%s' "$*" | base64 -w 0) | base64 -d > /run/command.\$\$; exec sh /run/command.\$\$ 2>&1 < /dev/null\"],\
\"capture-output\":true,\"env\":[\"PATH=/usr/sbin:/usr/bin:/sbin:/bin\",\"HOME=/root\"]}}" 2>&1) ||
        { debian_show "$name"; die "the guest $name rejects a command: $answer"; }
    pid=$(sed -n 's/.*"pid":\([0-9]*\).*/\1/p' <<< "$answer")
    [ -n "$pid" ] || die "unexpected answer of the guest $name: $answer"
    while true; do
        answer=$(v qemu-agent-command "$name" --timeout 300 "{\"execute\":\"guest-exec-status\",\"arguments\":{\"pid\":$pid}}" 2>&1) ||
            { debian_show "$name"; die "the guest $name does not answer: $answer"; }
        [[ $answer != *'"exited":true'* ]] || break
        [ $SECONDS -lt $end ] || { debian_show "$name"; die "not done within $limit s in the guest $name: $*"; }
        sleep 0.2 # the agent cannot wait for a process
    done
    sed -n 's/.*"out-data":"\([^"]*\)".*/\1/p' <<< "$answer" | base64 -d > "$work/answer.$name"
    if [[ $answer = *'"signal":'* ]]; then
        echo "ended by signal $(sed -n 's/.*"signal":\([0-9]*\).*/\1/p' <<< "$answer")" >> "$work/answer.$name"
        return 128
    fi
    return "$(sed -n 's/.*"exitcode":\([0-9]*\).*/\1/p' <<< "$answer")"
}

# Gives guest $1 the address $2 on its one network card. There is no DHCP server on the bridge, and systemd-networkd would remove an
# address that it does not know. The setting is in /run, so that the guest's files stay unchanged.
debian_address() {
    debian_run "$1" 900 "mkdir -p /run/systemd/network && printf '[Match]\nName=en*\n[Network]\nAddress=$2/24\n' > /run/systemd/network/10-test.network && networkctl reload && \
        for i in \$(seq 6000); do ip addr | grep -q 'inet $2/' && exit 0; sleep 0.1; done; ip addr; exit 1"
}

# --- Steps

steps=0
# Runs the function or command $3... as step $2 of guest $1, and prints its result in one line.
step() {
    local who=$1 what=$2 start result="" status=0
    shift 2
    start=$(date +%s.%N)
    "$@" || status=$?
    [ $status = 0 ] || die "$who: $what: failed${result:+: $result}"
    steps=$((steps + 1))
    printf '%-6s %-72s %6s s  %s\n' "$who" "$what" "$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }')" "$result"
}

# Waits within $1 seconds until the command $2... succeeds.
await() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || { result="did not happen in time: $*: ${result:-}"; return 1; }
        sleep 0.2 # there is no event for the broker's state
    done
}

metadata() { printf "<vgpu xmlns='urn:hawser:vgpu:1' %s/>" "$*"; }
shmem() {
    printf "<shmem name='hawser-%s'><model type='ivshmem-plain'/><size unit='M'>%s</size><alias name='ua-hawser'/></shmem>" "$1" "$2"
}
network() { printf "<interface type='bridge'><mac address='52:54:00:6a:77:%s'/><source bridge='hawser0'/><model type='virtio'/></interface>" "$1"; }

define() {
    v define --validate "$1" > "$work/define.out" 2>&1 || { result=$(cat "$work/define.out"); return 1; }
}

boot() {
    v start "$1" > "$work/start.out" 2>&1 || { result=$(cat "$work/start.out"); return 1; }
    debian_await "$1" "${2:-$agent_limit}"
    debian_run "$1" 600 "mkdir -p /mnt/test && mount -o ro /dev/vdb /mnt/test" || { result=$(cat "$work/answer.$1"); return 1; }
}

# Runs program $3 in guest $1; it must pass, over carrier $2. Only the installed package gives it the vGPU's place.
run_program() {
    local guest=$1 carrier=$2 name=$3 status=0
    shift 3
    debian_run "$guest" "${program_limit:-900}" "rm -f /tmp/stats; HAWSER_STATS=/tmp/stats HAWSER_CONNECT_TIMEOUT_MS=600000 /mnt/test/bin/$name $*; \
        status=\$?; cat /tmp/stats; exit \$status" || status=$?
    if [ $status != 0 ] || ! grep -q "\"carrier\":\"$carrier\"" "$work/answer.$guest"; then
        result="status $status: $(cat "$work/answer.$guest")"
        return 1
    fi
    result=$(sed -n "s/^PASS $name: //p" "$work/answer.$guest")
}
