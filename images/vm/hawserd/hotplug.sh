# shellcheck shell=bash disable=SC2034,SC2154 # variables of hawserd-test
# The group `hotplug` of the lane `hawserd`: vGPUs of running domains over a region. Sourced by hawserd-test.

hotplug_group() {
    uuids pc q35 blind
    define_domain pc pc
    define_domain q35 q35
    define_domain blind pc "" "" acpi=off
    step hotplug "three domains without a vGPU start" boot pc q35 blind
    step hotplug "a program finds no GPU" no_program pc
    step hotplug "pc: hawserctl attach plugs the device in, and a program passes" attached pc
    step hotplug "pc: hawserctl detach removes device, vGPU and region" detached pc
    step hotplug "pc: virsh metadata makes hawserd plug the device in" attached_by_virsh pc
    step hotplug "pc: virsh metadata --remove makes hawserd unplug it" detached_by_virsh pc
    step hotplug "pc: virsh attach-device and detach-device work alone" attached_alone pc
    step hotplug "pc: virsh metadata and attach-device at once give one device" attached_twice pc
    step hotplug "q35: attach without preparation is refused with a remedy" unprepared q35
    step hotplug "q35: hawserctl prepare takes effect at the next start" prepare q35
    step hotplug "q35: hawserctl attach plugs the device in, and a program passes" attached q35
    step hotplug "q35: hawserctl detach removes device, vGPU and region" detached q35
    step hotplug "attach fails for a guest that never finds the device" never_seen blind
    step hotplug "after that guest's reset nothing is left" after_reset blind
    undefine pc q35 blind
}

ctl() {
    timeout -k 5 900 "$hawserctl" "$@" > "$work/out" 2>&1 || { result=$(tr '\n' ' ' < "$work/out"); return 1; }
    result=''
}

# Gives the running domain $1 the metadata of a vGPU with the attributes $2.
set_metadata() {
    quietly v metadata "$1" urn:hawser:vgpu:1 --key vgpu --set "<vgpu region='${region_mib}M' ${2:-}/>" --live
}

attached() { ctl attach "$1" --live --region ${region_mib}M --timeout 300 && has_all "$1" && has_device "$1" && program "$1"; }

# The broker notices the end of a program within a moment.
detached() { await 300 not sessions_of "$1" && ctl detach "$1" --live --timeout 300 && has_nothing "$1" && ! has_device "$1" && no_program "$1"; }

# Sets only the metadata; hawserd plugs the device in.
attached_by_virsh() { set_metadata "$1" "share='20'" && has_all "$1" && has_device "$1" && program "$1" && share_is 20; }

detached_by_virsh() {
    quietly v metadata "$1" urn:hawser:vgpu:1 --remove --live && await 300 not has_device "$1" && has_nothing "$1"
}

attached_alone() {
    local said
    device "$1" > "$work/device.xml"
    quietly v attach-device "$1" "$work/device.xml" --live && has_all "$1" && program "$1" || return 1
    said=$result
    quietly v detach-device "$1" "$work/device.xml" --live && has_nothing "$1" && ! has_device "$1" && result=$said
}

# Both at once: hawserd plugs the device in because of the metadata, and virsh plugs it in, too. One of them is first.
attached_twice() {
    local said
    set_metadata "$1" || return 1
    v attach-device "$1" "$work/device.xml" --live > "$work/out" 2>&1 || true
    has_all "$1" && [ "$(v dumpxml "$1" | grep -c '<shmem')" = 1 ] && program "$1" || return 1
    said=$result
    detached_by_virsh "$1" && result=$said
}

unprepared() {
    local said
    ctl attach "$1" --live --region ${region_mib}M && { result="it was attached"; return 1; }
    said=$result
    grep -q "hawserctl prepare $1" <<< "$said" && has_nothing "$1" && ! has_device "$1" && result=$said
}

prepare() {
    ctl prepare "$1" --region ${region_mib}M || return 1
    v dumpxml --inactive "$1" > "$work/prepared.xml"
    ctl prepare "$1" --region ${region_mib}M && v dumpxml --inactive "$1" | cmp - "$work/prepared.xml" ||
        { result="the second prepare changed the definition"; return 1; }
    v destroy "$1" && boot "$1"
}

never_seen() {
    local said
    ctl attach "$1" --live --region ${region_mib}M --timeout 5 && { result="it was attached"; return 1; }
    said=$result
    ! has_vgpu "$1" && ! has_region "$1" || { result="the broker still has its vGPU or region"; return 1; }
    await 300 has_status "$1" waiting "give the device back" && result=$said
}

after_reset() {
    serial_send "$1" reboot -f
    serial_await_boot "$1"
    await 300 not has_device "$1" && has_nothing "$1"
}
