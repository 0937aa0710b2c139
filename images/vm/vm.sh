# shellcheck shell=bash disable=SC2015,SC2154 # variables of the sourcing script
#
# Sourced by bash after lane.sh. Fetches a kernel without installing it, makes an initramfs with a guest's files, and starts a virtual
# machine, under QEMU's software emulation unless a lane has called vm_use_kvm.

# shellcheck source=images/vm/serial.sh
. "$root/images/vm/serial.sh"

qemu=${HAWSER_QEMU:-qemu-system-x86_64}
kernel_package=linux-image-cloud-amd64 kernel_dir=$root/images/target/kernel
kernel='' modules=''
vm_modules=(virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net)
vm_pid='' vm_name='' vm_accelerator=(-accel "tcg,thread=multi")

# Sets `kernel` and `modules` (the folder of its modules): from --kernel, from an earlier run, or from a Debian package that is unpacked
# into this build's folder without installing it.
find_kernel() {
    if [ -n "$kernel" ]; then
        [ -r "$kernel" ] || die "the kernel cannot be read: $kernel"
        return
    fi
    if ! compgen -G "$kernel_dir/boot/vmlinuz-*" > /dev/null; then
        command -v apt-get > /dev/null && command -v dpkg > /dev/null ||
            skip "no guest kernel: name one with --kernel (apt-get, which would fetch Debian's, is missing)"
        mkdir -p "$kernel_dir"
        # A lock, because several parts of a lane may fetch the kernel at once.
        (
            flock 9
            compgen -G "$kernel_dir/boot/vmlinuz-*" > /dev/null || fetch_kernel 9>&-
        ) 9> "$kernel_dir/lock" || exit $?
    fi
    kernel=$(compgen -G "$kernel_dir/boot/vmlinuz-*" | sort -V | tail -n 1)
    modules=$kernel_dir/lib/modules/${kernel##*/vmlinuz-}
}

# Puts Debian's kernel and its modules into `kernel_dir`.
fetch_kernel() {
    local package
    package=$(apt-cache depends "$kernel_package" 2> /dev/null | sed -n 's/^ *Depends: \(linux-image-.*\)$/\1/p' | sed -n 1p)
    [ -n "$package" ] || skip "no guest kernel: apt knows no $kernel_package (apt-get update?); or name one with --kernel"
    say "$me: fetching $package"
    mkdir -p "$work/kernel"
    # apt warns unless its own user can write to the folder.
    chmod 755 "$work"
    chmod 777 "$work/kernel"
    (cd "$work/kernel" && timeout 900 apt-get -qq -o Acquire::Retries=5 download "$package") > "$work/kernel.log" 2>&1 ||
        skip "no guest kernel: $package cannot be fetched: $(tail -n 1 "$work/kernel.log")"
    # Moved by rename, the kernel last: its presence shows that the folder is complete, even after a killed run.
    dpkg -x "$work/kernel/$package"_*.deb "$work/kernel/tree" && rm -rf "${kernel_dir:?}/lib" "$kernel_dir/new" && mkdir "$kernel_dir/new" &&
        cp -r "$work/kernel/tree/lib" "$work/kernel/tree/boot" "$kernel_dir/new/" &&
        mv "$kernel_dir/new/lib" "$kernel_dir/new/boot" "$kernel_dir/" ||
        die "the guest's kernel cannot be stored in $kernel_dir"
    rm -rf "$kernel_dir/new" "$work/kernel"
}

# Lists the modules of `vm_modules`, which are in the order in which they must be loaded, and copies them into the tree $1.
put_modules() {
    local tree=$1 name file
    : > "$tree/modules"
    [ -d "${modules:-/nowhere}" ] || return 0
    for name in "${vm_modules[@]}"; do
        file=$(find "$modules" -name "$name.ko" | sed -n 1p)
        [ -z "$file" ] || { install -D -m 644 "$file" "$tree/lib/modules/$name.ko"; echo "/lib/modules/$name.ko" >> "$tree/modules"; }
    done
}

# Makes the file $1 from the tree $2.
make_initramfs() {
    (cd "$2" && find . | cpio --quiet -o -H newc -R 0:0) > "$1"
}

# Puts busybox, the first process $2 and the functions for commands into the tree $1.
put_machine() {
    mkdir -p "$1/bin"
    install "$(command -v busybox)" "$1/bin/busybox"
    install "$2" "$1/init"
    install -m 644 "$root/appliance/lanes/inside.sh" "$1/inside.sh"
}

# As put_machine, and puts Hawser's libraries and the programs $3... with their PTX into the guest's tree $1.
put_guest() {
    local tree=$1 file
    put_machine "$1" "$2"
    shift 2
    for file in libcuda.so.1 libcudart.so.12 libcudart.so.13 libnvidia-ml.so.1; do
        put_with_libraries "$tree" "$libraries/$file" "/usr/lib/hawser/$file"
    done
    for file in "$@"; do
        put_with_libraries "$tree" "$bin/$file" "/opt/bin/$file"
    done
    cp -r "$bin/ptx" "$tree/opt/bin/ptx"
}

# Puts a Java, hawserd and its hooks into the tree $1, in the folders of the source tree. find-java has set `java_home`.
put_hawserd() {
    mkdir -p "$1/java" "$1/host-broker/broker/src/main" "$1/appliance/libvirt/hawserd/src/main" "$1/appliance/libvirt/hawserd/target"
    cp -a "$java_home/bin" "$java_home/conf" "$java_home/lib" "$java_home/release" "$1/java/"
    rm -f "$1/java/lib/src.zip"
    cp -r "$root/host-broker/broker/src/main/sh" "$1/host-broker/broker/src/main/"
    cp -r "$hawserd_app" "$1/appliance/libvirt/hawserd/target/"
    cp -r "$root/appliance/libvirt/hawserd/src/main/sh" "$1/appliance/libvirt/hawserd/src/main/"
    cp -r "$root/appliance/hooks" "$1/hooks"
}

# Chooses KVM if it runs `kernel`. The presence of /dev/kvm does not show this: some clouds' KVM aborts QEMU or hangs.
vm_use_kvm() {
    local tree=$work/probe
    [ -w /dev/kvm ] || return 0
    mkdir -p "$tree/bin"
    install "$(command -v busybox)" "$tree/bin/busybox"
    printf '#!/bin/busybox sh\necho KVM-RUNS > /dev/console\nexec /bin/busybox poweroff -f\n' > "$tree/init"
    chmod 755 "$tree/init"
    make_initramfs "$work/probe.initramfs" "$tree"
    # In a subshell, which hides Bash's message about an aborted process.
    (timeout -k 5 30 "$qemu" -nodefaults -no-user-config -display none -accel kvm -cpu host -machine q35 -m 256 -serial stdio -no-reboot \
        -kernel "$kernel" -initrd "$work/probe.initramfs" -append "console=ttyS0 quiet panic=-1 rdinit=/init" \
        < /dev/null > "$work/probe.out" 2>&1 || true) 2> /dev/null
    ! grep -q KVM-RUNS "$work/probe.out" || vm_accelerator=(-accel kvm -cpu host)
}

# Starts QEMU as the machine $1 with the further arguments, and waits $2 seconds at most for its boot.
vm_boot() {
    vm_launch "$1" "${@:3}"
    serial_await_boot "$1" "$2"
}

# Starts QEMU as the machine $1 with the further arguments.
vm_launch() {
    vm_name=$1
    shift
    serial_open "$vm_name"
    timeout -k 5 "${vm_limit:-3600}" "$qemu" -nodefaults -no-user-config -display none "${vm_accelerator[@]}" -smp 2 \
        -serial "file:$work/$vm_name.console" -chardev "pipe,id=control,path=$work/$vm_name.control" -serial chardev:control "$@" \
        < /dev/null > "$work/$vm_name.qemu" 2>&1 &
    vm_pid=$!
    serial_pid[$vm_name]=$vm_pid
}

# Starts the machine $1 with `kernel`, the file $work/initramfs and the further arguments of QEMU.
vm_start() {
    vm_boot "$1" 600 -machine q35 -m 512 -kernel "$kernel" -initrd "$work/initramfs" \
        -append "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on rdinit=/init hawser.machine=$1" "${@:2}"
}

vm_run() { serial_run "$vm_name" "$@"; }
vm_expect() { serial_expect "$vm_name" "$@"; }

# Powers the machine off and waits $1 seconds at most for QEMU's end.
vm_power_off() {
    serial_send "$vm_name" poweroff -f
    await "$1" not kill -0 "$vm_pid" 2> /dev/null
    wait "$vm_pid" || { serial_show "$vm_name"; die "QEMU ended with $?"; }
    vm_pid=''
}

# Kills QEMU without a shutdown of the guest.
vm_kill() {
    [ -n "$vm_pid" ] || return 0
    kill -KILL "$(child_of "$vm_pid")" 2> /dev/null || kill "$vm_pid" 2> /dev/null || true
    wait "$vm_pid" 2> /dev/null || true
    vm_pid=''
}
