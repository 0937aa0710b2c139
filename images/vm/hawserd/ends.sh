# shellcheck shell=bash disable=SC2034,SC2154 # variables of hawserd-test
# The groups `stop` and `restarts` of the lane `hawserd`: ends of domains, and killed and restarted services. Sourced by hawserd-test.

stop_group() {
    uuids s1 s2
    define_domain s1 pc "$(vgpu)" "$(device s1)"
    define_domain s2 pc "$(vgpu)" "$(device s2)"
    step stop "two domains start" boot s1 s2
    step stop "after kill -9 of QEMU with an open session nothing is left" crashed s1
    step stop "after destroy with an open session nothing is left" destroyed s2
    step stop "after a power-off inside the guest nothing is left" powered_off s1
}

crashed() { hold "$1" && kill -KILL "$(qemu_of "$1")" && has_nothing "$1"; }
destroyed() { hold "$1" && v destroy "$1" && has_nothing "$1"; }
powered_off() { boot "$1" && has_all "$1" && serial_send "$1" poweroff -f && await 300 is_off "$1" && has_nothing "$1"; }

restarts_group() {
    uuids k1 k2
    define_domain k1 pc "$(vgpu)" "$(device k1)"
    define_domain k2 pc "$(vgpu)" "$(device k2)"
    step restarts "two domains start" boot k1 k2
    step restarts "a session continues while hawserd is killed and restarted" hawserd_restarts k1
    step restarts "hawserd releases the vGPU of a domain that stopped without it" stops_without_hawserd k2
    boot k2
    step restarts "a session continues while libvirtd restarts" libvirtd_restarts k1
    step restarts "hawserd releases the vGPU of a domain that ended without libvirtd" ends_without_libvirtd k2
    step restarts "programs pass again after the broker is killed and restarted" broker_restarts k1
    v destroy k1
    step restarts "nothing of the destroyed domain is left" has_nothing k1
    v undefine k1
    v undefine k2
}

hawserd_restarts() {
    hold "$1"
    hawserd_kill
    start_hawserd
    has_all "$1" && program "$1" && let_go "$1"
}

stops_without_hawserd() {
    hawserd_kill
    v destroy "$1"
    has_vgpu "$1" || { result="the vGPU ended although hawserd was not running"; return 1; }
    start_hawserd
    has_nothing "$1"
}

libvirtd_restarts() {
    hold "$1"
    libvirt_stop
    libvirt_start
    has_all "$1"
    let_go "$1"
    # hawserd receives libvirt's events again.
    set_metadata "$1" "share='33'" && await 300 share_is 33 && has_all "$1"
}

ends_without_libvirtd() {
    local pid
    pid=$(qemu_of "$1")
    libvirt_stop KILL
    kill -KILL "$pid"
    libvirt_start
    has_nothing "$1"
}

broker_restarts() {
    kill_broker
    await 300 has_status "$1" waiting
    broker
    has_all "$1" && program "$1"
}
