# shellcheck shell=bash disable=SC2154 # variables of the sourcing script
# Debian guests under libvirt: their image, a second disk with the tested files, domains, and commands through QEMU's guest agent. Sourced by
# bash after lane.sh and libvirt.sh.

agent_limit=3000

# Makes the image $1, NAME-KEY.img, by the recipe $2 with the further options, unless its file exists, and deletes earlier ones of this name.
recipe_image() {
    local image=$1 recipe=$2
    [ ! -e "$image" ] || [ ! -e "$image.whole" ] || return 0
    need mmdebstrap mke2fs:e2fsprogs
    rm -f "${image%-*}"-*.img*
    "$root/images/$recipe/make" --out "$image" "${@:3}" || die "the image $image could not be made"
    touch "$image.whole"
}

# Prints a key for an image of recipe $1 from its files, and from the contents of the further files.
recipe_key() {
    local files
    mapfile -t files < <(find "$root/images/$1/tree" -type f | LC_ALL=C sort)
    cat "$root/images/recipe.sh" "$root/images/$1/make" "${files[@]}" "${@:2}" | sha256sum | cut -c 1-12
}

# Prepares the guests' image, made once a week, and their second disk $work/test.img: the package hawser-guest and test programs. Needs the
# network, so it runs before lane_enter. debian_prepared reads in the namespaces what it has prepared.
debian_prepare() {
    local name programs=(drv_vector_add drv_large_copies drv_threads) tree=$work/tree
    need qemu-img:qemu-utils mke2fs:e2fsprogs
    package_file 'hawser-guest_*_amd64.deb'
    guest_image=$root/images/target/guest-$(recipe_key guest <(date +%G-%V)).img
    recipe_image "$guest_image" guest
    mkdir -p "$tree/bin"
    cp "$package_file" "$tree/hawser-guest.deb"
    cp "$root/appliance/lanes/inside.sh" "$tree/"
    cp -r "$bin/ptx" "$tree/bin/ptx"
    for name in vector_add matrix_mul pinned_copies streams_events; do
        [ ! -x "$bin/$name" ] || programs+=("$name")
    done
    [ -x "$bin/vector_add" ] || say "$me: nvcc not found when building: only programs of the Driver API run"
    for name in "${programs[@]}" hold drv_fill_memory drv_matrix_mul hawser_benchmark; do
        cp "$bin/$name" "$tree/bin/"
    done
    printf '%s\n' "${programs[@]}" > "$work/programs"
    printf '%s\n' "$guest_image" > "$work/image"
    debian_disk "$work/test.img" "$tree"
}

debian_prepared() {
    guest_image=$(cat "$work/image")
    mapfile -t programs < "$work/programs"
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

debian_die() {
    debian_show "$1"
    die "the guest $1 $2"
}

# Sends the agent of guest $1 the command $2 in JSON, within $3 seconds, and prints the answer.
debian_agent() { v qemu-agent-command "$1" --timeout "$3" "$2" 2>&1; }

# Waits until the agent of guest $1 answers, within $2 seconds.
debian_await() { await "${2:-$agent_limit}" debian_answers "$1" || debian_die "$1" "did not boot: $result"; }
debian_answers() { result=$(debian_agent "$1" '{"execute":"guest-ping"}' 60 | tail -n 1) && jq -e .return <<< "$result" > /dev/null 2>&1 && result=''; }

# Runs a command line in guest $1, within $2 seconds, with the functions of inside.sh and the test programs. Its output goes to the file
# $work/answer.$1. Returns its status.
debian_run() {
    local name=$1 limit=$2 command debian_process debian_status
    shift 2
    : > "$work/answer.$name"
    command=$(jq -nc --arg line "exec 2>&1 < /dev/null; [ ! -e /mnt/test/inside.sh ] || . /mnt/test/inside.sh; $*" '{execute: "guest-exec",
        arguments: {path: "/bin/sh", arg: ["-c", $line], "capture-output": true, env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin:/mnt/test/bin",
        "HOME=/root", "HAWSER_CONNECT_TIMEOUT_MS=600000"]}}')
    debian_process=$(debian_agent "$name" "$command" 300) || debian_die "$name" "rejects a command: $debian_process"
    command=$(jq -c '{execute: "guest-exec-status", arguments: {pid: .return.pid}}' <<< "$debian_process") ||
        die "unexpected answer of the guest $name: $debian_process"
    await "$limit" debian_has_ended "$name" "$command" || debian_die "$name" "$result"
    jq -r '.return["out-data"] // empty' <<< "$debian_status" | base64 -d > "$work/answer.$name"
    if jq -e '.return | has("signal")' <<< "$debian_status" > /dev/null; then
        jq -r '"ended by signal \(.return.signal)"' <<< "$debian_status" >> "$work/answer.$name"
        return 128
    fi
    return "$(jq .return.exitcode <<< "$debian_status")"
}
debian_has_ended() {
    debian_status=$(debian_agent "$1" "$2" 300) || debian_die "$1" "does not answer: $debian_status"
    jq -e .return.exited <<< "$debian_status" > /dev/null
}

# As debian_run; the command must succeed.
debian_expect() { debian_run "$@" || { result="in $1: $(tail -n 20 "$work/answer.$1")"; return 1; }; }

# Gives guest $1 the address $2 on its one network card. There is no DHCP server on the bridge, and systemd-networkd would remove an
# address that it does not know. The setting is in /run, so that the guest's files stay unchanged.
debian_address() {
    debian_expect "$1" 900 "mkdir -p /run/systemd/network && printf '[Match]\nName=en*\n[Network]\nAddress=$2/24\n' > /run/systemd/network/10-test.network && networkctl reload && has_address() { ip addr | grep -q 'inet $2/'; } && \
        { await 600 has_address || { ip addr; exit 1; }; }"
}

# Starts domain $1 and waits for its boot within $2 seconds.
boot() {
    v start "$1" > "$work/start.$1" 2>&1 || { result=$(cat "$work/start.$1"); return 1; }
    debian_await "$1" "${2:-$agent_limit}"
    debian_expect "$1" 600 "mkdir -p /mnt/test && mount -o ro /dev/vdb /mnt/test"
}

# Runs program $3 in guest $1; it must pass, over carrier $2. Only the installed package gives it the vGPU's place.
run_program() {
    local status=0
    debian_run "$1" "${program_limit:-900}" "counted $3" || status=$?
    program_passed "$work/answer.$1" "$3" "$2" "$status"
}
