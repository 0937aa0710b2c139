# shellcheck shell=bash disable=SC2015,SC2034,SC2154 # variables of hawserd-test
# The group `rdma` of the lane `hawserd`: networks and domains with virtual functions, in a real libvirt. The functions themselves are
# missing; the lane `functions` has one. hawserd and libvirt see them in a made folder of PCI devices, and libvirt refuses each start and
# hot-plug. Sourced by hawserd-test.

# hawserd's /sys of this lane: an InfiniBand adapter ib0 with two functions, and a RoCE adapter with one. libvirt sees its PCI devices, too.
fabric_sysfs=$work/sys
make_fabric_sysfs() {
    local devices=$fabric_sysfs/bus/pci/devices i
    mkdir -p "$devices/0000:f5:00.0/infiniband/mlx5_0" "$fabric_sysfs/class/net/ib0"
    echo b8ce:f603:00e4:0001 > "$devices/0000:f5:00.0/infiniband/mlx5_0/node_guid"
    echo 32 > "$fabric_sysfs/class/net/ib0/type"
    ln -s "$devices/0000:f5:00.0" "$fabric_sysfs/class/net/ib0/device"
    for i in 0 1; do
        mkdir -p "$devices/0000:f5:00.$((i + 1))" "$devices/0000:f5:00.0/sriov/$i"
        ln -s "../0000:f5:00.0" "$devices/0000:f5:00.$((i + 1))/physfn"
        ln -s "../0000:f5:00.$((i + 1))" "$devices/0000:f5:00.0/virtfn$i"
        touch "$devices/0000:f5:00.0/sriov/$i/"{node,port,policy}
    done
    mkdir -p "$devices/0000:f1:00.0" "$devices/0000:f1:00.1"
    ln -s ../0000:f1:00.0 "$devices/0000:f1:00.1/physfn"
    ln -s ../0000:f1:00.1 "$devices/0000:f1:00.0/virtfn0"
    mount --bind "$devices" /sys/bus/pci/devices
}

# Defines network $1 with the element $2.
define_network() {
    printf '<network><name>%s</name>%s</network>' "$1" "$2" > "$work/$1-network.xml"
    quietly v net-define "$work/$1-network.xml"
}

make_networks() {
    local function="<address type='pci' domain='0x0000' bus='0xf1' slot='0x00' function='0x1'/>"
    define_network roce "<forward mode='hostdev' managed='yes'>$function</forward><vlan><tag id='120'/></vlan>" &&
        define_network ib "<forward mode='hostdev' managed='yes'><pf dev='ib0'/></forward>" &&
        define_network plain "<bridge name='virbr77'/>" && quietly v net-start roce && result="an address list, an adapter, no forwarding"
}

rdma_group() {
    local name
    uuids f1 f2 f3 f4
    define_domain f1 pc
    define_domain f2 pc
    define_domain f3 pc
    define_domain f4 pc
    step rdma "libvirt defines networks of virtual functions" make_networks
    step rdma "a missing network is refused" fabric_refused f1 --config missing "libvirt has no network missing"
    step rdma "a network that is no pool is refused" fabric_refused f1 --config plain "must be hostdev"
    step rdma "RoCE: attach puts an interface of the network into the definition" roce_defined f1
    step rdma "RoCE: a start without a free function is refused, and nothing is left" fabric_not_started f1
    step rdma "RoCE: detach takes the interface out of the definition" fabric_undefined f1
    step rdma "InfiniBand: attach chooses a function and adds a host device" infiniband_defined f2 0000:f5:00.1
    step rdma "InfiniBand: the second domain gets the other function" infiniband_defined f3 0000:f5:00.2
    step rdma "InfiniBand: the third domain gets none" fabric_refused f4 --config ib "no virtual function of network ib is free"
    step rdma "InfiniBand: the start sets the GUIDs, its failure takes them back" infiniband_guids f2
    step rdma "InfiniBand: detach removes the host device" fabric_undefined f2
    step rdma "InfiniBand: the function is free again" infiniband_defined f4 0000:f5:00.1
    step rdma "a running domain whose hot-plug libvirt refuses has no vGPU" fabric_refused_live f1
    for name in f1 f2 f3 f4; do v undefine "$name"; done
}

# An attach of domain $1 with the scope $2 to network $3 must fail with the text $4.
fabric_refused() {
    local said
    ctl attach "$1" "$2" --transport rdma --network "$3" && { result="it was attached"; return 1; }
    said=$result
    grep -q "$4" <<< "$said" && ! grep -q -e "<hostdev" -e "<interface" <<< "$(v dumpxml "$1")" && result=$said
}

definition() { v dumpxml --inactive "$1" > "$work/definition.xml"; }

roce_defined() {
    ctl attach "$1" --config --transport rdma --network roce --memory 64M && definition "$1" || return 1
    grep -q "<source network='roce'/>" "$work/definition.xml" && grep -q "<alias name='ua-hawser-rdma'/>" "$work/definition.xml" &&
        grep -q "<mac address='02:" "$work/definition.xml" && grep -q 'transport="rdma"' "$work/definition.xml" ||
        { result=$(cat "$work/definition.xml"); return 1; }
    # A second attach changes nothing.
    cp "$work/definition.xml" "$work/first.xml"
    ctl attach "$1" --config --transport rdma --network roce --memory 64M && definition "$1" &&
        cmp "$work/first.xml" "$work/definition.xml" && result="$(grep -o "<mac address='[^']*'" "$work/definition.xml")"
}

fabric_not_started() { refused "$1" '.'; }

fabric_undefined() {
    ctl detach "$1" --config && definition "$1" || return 1
    ! grep -q -e '<hostdev' -e '<interface' -e urn:hawser -e fwcfg "$work/definition.xml" || { result=$(cat "$work/definition.xml"); return 1; }
}

infiniband_defined() {
    ctl attach "$1" --config --transport rdma --network ib && definition "$1" || return 1
    grep -q "function=\"$2\"" "$work/definition.xml" && grep -q "<hostdev mode='subsystem' type='pci' managed='yes'>" "$work/definition.xml" &&
        grep -q "<address domain='0x0000' bus='0x${2:5:2}' slot='0x00' function='0x${2:11}'/>" "$work/definition.xml" ||
        { result=$(cat "$work/definition.xml"); return 1; }
    result=$2
}

# libvirt refuses the start after the hook has set GUIDs and policy. A made file keeps the end of an earlier longer text, so the end of
# "Follow" behind "Down" shows that both were written.
infiniband_guids() {
    local said guid folder=$fabric_sysfs/bus/pci/devices/0000:f5:00.0/sriov/0
    guid=$("$hawserctl" --json domains | jq -r ".[] | select(.domain == \"$1\") | .fabricAddress")
    [[ $guid = 02:* ]] || { result="no GUID in the list of domains: $guid"; return 1; }
    fabric_not_started "$1" || return 1
    said=$result
    [ "$(cat "$folder/policy")" = $'Down\nw' ] || { result="policy: $(cat "$folder/policy")"; return 1; }
    grep -q '^02:' "$folder/port" && ! grep -q "$guid" "$folder/port" || { result="port: $(cat "$folder/port")"; return 1; }
    result="$guid; $said"
}

fabric_refused_live() {
    local said
    start "$1" || return 1
    fabric_refused "$1" --live roce "cannot be added" && ! has_vgpu "$1" || return 1
    said=$result
    v destroy "$1" && result=$said
}
