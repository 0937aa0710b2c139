# shellcheck shell=bash disable=SC2015,SC2154 # variables of ansible/test
# Checks of the program that prepares adapters, on a made /sys, and of the templates for its file and libvirt's networks. Sourced by
# ansible/test.

# Makes the folder of adapter $1 with type $2 and link flags $3.
make_adapter() {
    local device=$work/sys/class/net/$1/device
    mkdir -p "$device/infiniband/mlx5_$1"
    echo "$2" > "$work/sys/class/net/$1/type"
    echo "$3" > "$work/sys/class/net/$1/flags"
    echo 0 > "$device/sriov_numvfs"
    echo 8 > "$device/sriov_totalvfs"
    echo b8ce:f603:00e4:0001 > "$device/infiniband/mlx5_$1/node_guid"
}

# Runs the program for the lines $@.
fabric() {
    local status=0
    printf '%s\n' "$@" > "$work/fabric.conf"
    HAWSER_SYSFS=$work/sys HAWSER_FABRIC=$work/fabric.conf "$root/ansible/roles/hypervisor/files/hawser-functions" \
        > "$work/fabric.out" 2>&1 || status=$?
    result=$(paste -sd' ' "$work/fabric.out")
    return $status
}

check_fabric() {
    local ib=$work/sys/class/net/ib0/device ens=$work/sys/class/net/ens1/device folder
    rm -rf "$work/sys"
    make_adapter ens1 1 0x1003
    make_adapter ib0 32 0x1002
    for folder in 0 1; do
        mkdir -p "$ib/sriov/$folder"
        echo 00:00:00:00:00:00:00:00 | tee "$ib/sriov/$folder/node" > "$ib/sriov/$folder/port"
    done
    fabric '# a comment' '' 'ens1 4' 'ib0 2' || return 1
    [ "$(cat "$ens/sriov_numvfs" "$ib/sriov_numvfs" | paste -sd' ')" = "4 2" ] || { result="other numbers of functions"; return 1; }
    [[ $result = *"ib0: up"* && $result != *"ens1: up"* ]] || return 1
    # FabricAddress.freeGuid computes the same; FabricAddressTest has the same values.
    [ "$(cat "$ib/sriov/0/node" "$ib/sriov/0/port" | paste -sd' ')" = "$free_guids" ] ||
        { result="other GUIDs: $(cat "$ib/sriov/0/node" "$ib/sriov/0/port")"; return 1; }
    echo 0x1003 > "$work/sys/class/net/ib0/flags"
    echo 02:00:00:00:00:00:00:02 > "$ib/sriov/1/node"
    fabric 'ens1 4' 'ib0 2' && [ -z "$result" ] || { result="a second run has changed: $result"; return 1; }
    mkdir -p "$ens/virtfn0"
    ln -s ../../../bus/pci/drivers/vfio-pci "$ens/virtfn0/driver"
    ! fabric 'ens1 2' && [[ $result = *"a domain has the function"* && $(cat "$ens/sriov_numvfs") = 4 ]] ||
        { result="functions of a domain were removed: $result"; return 1; }
    rm -r "$ens/virtfn0"
    fabric 'ens1 2' && [[ $result = *"sriov_numvfs: 0 "*"sriov_numvfs: 2" ]] || { result="not by way of 0: $result"; return 1; }
    ! fabric 'ens1 9' && [[ $result = *"at most 8"* ]] || { result="too many functions: $result"; return 1; }
    ! fabric 'ens1 many' && [[ $result = *"not a number"* ]] || { result="no number: $result"; return 1; }
    ! fabric 'ens7 1' 'ens1 3' && [[ $result = *"ens7 does not exist"* && $(cat "$ens/sriov_numvfs") = 3 ]] ||
        { result="a missing adapter: $result"; return 1; }
    result="functions, GUIDs and links of a made /sys"
}
# Of functions of an adapter with node GUID b8ce:f603:00e4:0001: node and port of function 0.
free_guids="02:e9:5a:8b:ca:96:b3:6c 02:e9:5a:8b:ca:96:b3:6d"

# The role must write its files in two runs, the second without a change, and libvirt must find the networks valid.
check_fabric_role() {
    cat > "$work/fabric.yml" <<YAML
---
- name: The files of adapters
  hosts: localhost
  connection: local
  gather_facts: false
  vars:
    item: {interface: ens1, functions: 4, network: roce, vlan: 120}
    hypervisor_fabric: [{interface: ens1, functions: 4, network: roce, vlan: 120}, {interface: ib0, functions: 2}]
  tasks:
    - name: Write the adapters
      ansible.builtin.template: {src: $root/ansible/roles/hypervisor/templates/fabric.conf.j2, dest: $work/made.conf, mode: "0644"}
    - name: Write a network
      ansible.builtin.template: {src: $root/ansible/roles/hypervisor/templates/network.xml.j2, dest: $work/made.xml, mode: "0644"}
YAML
    ansible-playbook -i localhost, "$work/fabric.yml" > "$work/fabric.log" 2>&1 || { result=$(cat "$work/fabric.log"); return 1; }
    [ "$(grep -v '^#' "$work/made.conf" | paste -sd,)" = "ens1 4,ib0 2" ] || { result=$(cat "$work/made.conf"); return 1; }
    grep -q "<tag id='120'/>" "$work/made.xml" || { result=$(cat "$work/made.xml"); return 1; }
    ! has xmllint || ! has virt-xml-validate || virt-xml-validate "$work/made.xml" network > "$work/fabric.log" 2>&1 ||
        { result=$(cat "$work/fabric.log"); return 1; }
    result="fabric.conf and a network with a VLAN"
}
