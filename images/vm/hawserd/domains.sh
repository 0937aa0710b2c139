# shellcheck shell=bash disable=SC2015,SC2034,SC2154 # variables of hawserd-test
# The domains of the lane `hawserd`, programs in their guests, and checks of what a domain has. Sourced by hawserd-test.

declare -A uuid_of=()

make_guest() {
    local tree=$work/tree name file
    put_guest "$tree" "$root/images/vm/guest-init" drv_vector_add hold
    put_modules "$tree"
    for name in qemu_fw_cfg virtio_console; do
        file=$(find "${modules:-/nowhere}" -name $name.ko 2> /dev/null | sed -n 1p)
        [ -z "$file" ] || { install -D -m 644 "$file" "$tree/lib/modules/$name.ko"; echo "/lib/modules/$name.ko" >> "$tree/modules"; }
    done
    [ -z "$agent" ] || put_with_libraries "$tree" "$agent" /opt/bin/qemu-ga
    make_initramfs "$work/initramfs" "$tree"
}

# Prints the device of domain $1 with the name of domain $2's region.
device() { shmem "${uuid_of[${2:-$1}]}" $region_mib; }

# Prints the metadata of a vGPU as an operator writes it, with the further attributes $1.
vgpu() { metadata "region='${region_mib}M' ${1:-}"; }

uuids() { local name; for name in "$@"; do uuid_of[$name]=$(cat /proc/sys/kernel/random/uuid); done; }

# Defines domain $1 with machine $2, metadata $3, devices $4 and arguments of its kernel $5.
define_domain() {
    local name=$1 machine=$2
    serial_open "$name"
    cat > "$work/$name.xml" <<TEXT
<domain type='qemu'>
  <name>$name</name>
  <uuid>${uuid_of[$name]}</uuid>
  <metadata>${3:-}</metadata>
  <memory unit='MiB'>256</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='$machine'>hvm</type>
    <kernel>$kernel</kernel>
    <initrd>$work/initramfs</initrd>
    <cmdline>console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on rdinit=/init hawser.machine=$name ${5:-}</cmdline>
  </os>
  <features><acpi/></features>
  <cpu mode='maximum'/>
  <on_reboot>restart</on_reboot>
  <devices>
$(serial_ports "$name")
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    ${4:-}
  </devices>
</domain>
TEXT
    v define "$work/$name.xml"
}

start() {
    serial_forget "$1"
    v start "$1" > "$work/out" 2>&1 || { result=$(tr '\n' ' ' < "$work/out"); return 1; }
}

# Starts the domains together; each boot keeps one processor busy.
boot() {
    local name
    for name in "$@"; do start "$name" || return 1; done
    for name in "$@"; do serial_await_boot "$name"; done
}

# Ends the domains and their definitions.
undefine() { local name; for name in "$@"; do v destroy "$name"; v undefine "$name"; done; }

# --- Programs in guests. The libraries find the carrier by themselves.

# Runs a CUDA program in guest $1; it must pass, over carrier $2.
program() {
    local status=0
    serial_run "$1" 600 counted drv_vector_add || status=$?
    program_passed "$work/answer" drv_vector_add "${2:-shm}" "$status"
}

# Runs a program in guest $1; it must find no GPU.
no_program() {
    serial_run "$1" 600 "HAWSER_CONNECT_TIMEOUT_MS=1000 drv_vector_add" && { result="a program still found a GPU"; return 1; }
    grep -q -e NO_DEVICE -e DEVICE_UNAVAILABLE -e 'no CUDA' -e 'no GPU' "$work/answer" || { result=$(cat "$work/answer"); return 1; }
}

# Starts a program in guest $1 that holds its session; let_go ends it, and it must still have its session.
hold() { serial_expect "$1" 700 hold_start 1 --idle 1; }
let_go() { serial_expect "$1" 700 hold_end 1; }

# --- What a domain has.

has_vgpu() { rest_has vgpus --arg id "${uuid_of[$1]}@${2:-$host_one}" 'any(.owner.id // "" | startswith($id))'; }
has_region() { rest_has regions --arg name "hawser-${uuid_of[$1]}" 'any(.name == $name)'; }
has_file() { on "$libvirt_here" test -e "/dev/shm/hawser-${uuid_of[$1]}"; }
# A here-string, not a pipe: grep -q exits at its first match, and a writer into the pipe would then fail.
has_device() { grep -q "<shmem name='hawser-${uuid_of[$1]}'" <<< "$(v dumpxml "$1")"; }
sessions_of() { rest_has sessions --arg vgpu "$1" 'any(.vgpu == $vgpu)'; }
share_is() { rest_has vgpus --argjson share "$1" 'any(.computeShare == $share)'; }
qemu_of() { cat "/run/libvirt/qemu/$1.pid"; }

# Domain $1 must get the status ready, and have a vGPU, a region and a file.
has_all() {
    await 300 has_status "$1" ready || { result+="; the broker: $(rest vgpus)"; return 1; }
    has_vgpu "$1" && has_region "$1" && has_file "$1" || { result="status ready, but vGPU, region or file is missing"; return 1; }
}

# The broker, /dev/shm and hawserd must have nothing of domain $1.
has_nothing() {
    rest_has vgpus 'any(.name == "default")' || { result="the broker does not answer: $result"; return 1; }
    await 300 not has_vgpu "$1" && await 300 not has_region "$1" && await 300 not has_file "$1" || return 1
    [ ! -e "/run/hawser/state/guests/${uuid_of[$1]}.toml" ] || { result="its settings are left"; return 1; }
}
