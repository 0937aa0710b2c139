# shellcheck shell=bash disable=SC2034,SC2154 # variables of images/rdma-test
# The two machines of the lane `rdma`: their files, the network between them, and commands in them. Sourced by images/rdma-test.

broker_address=10.78.0.1 guest_address=10.78.0.2
kernel_package=linux-image-amd64 kernel_dir=$root/images/target/kernel-rdma
vm_modules+=(crc32_generic udp_tunnel ip6_udp_tunnel ib_core ib_uverbs rdma_rxe sch_netem)
verbs=/usr/lib/x86_64-linux-gnu

# Puts verbs with the provider of SoftRoCE and the tools of the fabric into the tree $1.
put_fabric() {
    local tree=$1 file
    for file in libibverbs.so.1 libibverbs/librxe-rdmav34.so; do
        put_with_libraries "$tree" "$verbs/$file" "$verbs/$file"
    done
    install -D -m 644 /etc/libibverbs.d/rxe.driver "$tree/etc/libibverbs.d/rxe.driver"
    for file in rdma tc ib_write_bw ib_write_lat; do
        put_with_libraries "$tree" "$(command -v "$file")" "/opt/bin/$file"
    done
    cat "$root/images/rdma/inside.sh" >> "$tree/inside.sh"
    printf 'root:x:0:0::/root:/bin/sh\n' > "$tree/etc/passwd"
    printf '127.0.0.1 localhost\n' > "$tree/etc/hosts"
    # The software GPU names itself by the machine's id.
    tr -d - < /proc/sys/kernel/random/uuid > "$tree/etc/machine-id"
}

# Makes the initramfs of both machines from the distribution $1.
make_machines() {
    local tree=$work/tree.broker package file fabric_files
    put_machine "$tree" "$root/images/vm/guest-init"
    mkdir -p "$tree/opt" "$tree/etc"
    tar -xf "$1" -C "$tree/opt"
    mv "$tree"/opt/hawser-* "$tree/opt/hawser"
    package=$tree/opt/hawser
    libraries=$work/guest bin=$work/programs
    mv "$package/lib/guest" "$libraries"
    mv "$package/lib/programs" "$bin"
    fabric_files=("$package/bin/hawser-fabric" "$package/lib/fabric-measure")
    rm -rf "$package"/{doc,share} "$package"/lib/{check,ctl,frameworks}
    for file in bin/java lib/server/libjvm.so lib/libnio.so lib/libnet.so; do
        put_libraries "$tree" "$package/runtime/$file"
    done
    # The launcher's readlink needs an option that busybox lacks, and busybox's shell prefers its own readlink.
    for file in dash bash readlink; do
        put_with_libraries "$tree" "$(command -v $file)" /bin/$file
    done
    mkdir -p "$tree/lib64"
    [ -e "$tree/lib64/ld-linux-x86-64.so.2" ] || cp -L /lib64/ld-linux-x86-64.so.2 "$tree/lib64/"
    put_fabric "$tree"
    put_modules "$tree"
    make_initramfs "$work/broker.initramfs" "$tree"

    choose_programs
    tree=$work/tree.guest
    mkdir -p "$tree/etc"
    put_guest "$tree" "$root/images/vm/guest-init" "${programs[@]}" drv_vector_add drv_large_copies hold hawser_benchmark
    put_with_libraries "$tree" "$(command -v bash)" /bin/bash
    [ ! -e "${fabric_files[0]}" ] || install -D "${fabric_files[0]}" "$tree/opt/bin/hawser-fabric"
    [ ! -e "${fabric_files[1]}" ] || install -D "${fabric_files[1]}" "$tree/opt/lib/fabric-measure"
    put_fabric "$tree"
    put_modules "$tree"
    make_initramfs "$work/guest.initramfs" "$tree"
}

# Boots the machine $1 with $2 MiB and the end $3 of the cable. The first machine waits for nothing; the second finds the first one's socket.
launch() {
    mkfifo "$work/$1.monitor.in" "$work/$1.monitor.out"
    exec {monitor}<> "$work/$1.monitor.in" {monitor_out}<> "$work/$1.monitor.out"
    monitors[$1]=$monitor
    vm_launch "$1" -machine q35 -m "$2" -kernel "$kernel" -initrd "$work/$1.initramfs" \
        -append "console=ttyS0 loglevel=5 panic=-1 mitigations=off random.trust_cpu=on rdinit=/init hawser.machine=$1" \
        -chardev "pipe,id=monitor,path=$work/$1.monitor" -mon chardev=monitor,mode=readline \
        -netdev "stream,id=cable,server=$3,addr.type=unix,addr.path=$work/cable" -device "virtio-net-pci,netdev=cable,mac=52:54:00:78:00:0$4,romfile="
}
declare -A monitors=()

boot_both() {
    launch broker 1536 on 1
    await 60 test -S "$work/cable"
    launch guest 768 off 2
    serial_await_boot broker
    serial_await_boot guest
    serial_expect guest 60 "uname -r"
    result="Linux $(cat "$work/answer"), ${vm_accelerator[1]%%,*}"
}

kill_machines() {
    for vm_name in "${!serial_pid[@]}"; do
        vm_pid=${serial_pid[$vm_name]}
        vm_kill
    done
}

in_guest() { serial_expect guest "$@"; }
in_broker() { serial_expect broker "$@"; }

join_both() {
    in_broker 180 join_fabric $broker_address
    in_guest 180 join_fabric $guest_address
    in_guest 60 "ping -c 1 -w 30 $broker_address"
    in_guest 60 "rdma link show"
    result=$(paste -sd' ' "$work/answer")
}

# Pulls (off) or plugs (on) the cable: both machines lose the carrier of their interface, as with a switch that fails.
cable() {
    local name
    for name in broker guest; do
        printf 'set_link cable %s\n' "$1" >&"${monitors[$name]}"
    done
}
