# shellcheck shell=bash disable=SC1007,SC2015,SC2154 # variables of the sourcing script
# Shell functions of images/vm/bare-test: a kernel that is not installed, an initramfs with the guest's files, and a virtual machine under
# QEMU's software emulation that takes commands from a serial port. Sourced by bash; the sourcing script sets `root`, `work` and
# `kernel_dir`, and defines `say`, `die` and `skip`.

qemu=${HAWSER_QEMU:-qemu-system-x86_64}
vm_pid= vm_name= vm_count=0 vm_rest=

# Sets `kernel` and `modules` (the folder of its modules): from --kernel, from an earlier run, or from a Debian package that is unpacked
# into this build's folder without installing it.
find_kernel() {
    if [ -n "${kernel:-}" ]; then
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
    package=$(apt-cache depends linux-image-cloud-amd64 2> /dev/null | sed -n 's/^ *Depends: \(linux-image-.*\)$/\1/p' | sed -n 1p)
    [ -n "$package" ] || skip "no guest kernel: apt knows no linux-image-cloud-amd64 (apt-get update?); or name one with --kernel"
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

# Copies a program or library to the same path in the guest's tree $1, with the shared libraries that it needs.
put_with_libraries() {
    local tree=$1 file=$2 target=$3 library
    install -D "$file" "$tree$target"
    while read -r library; do
        [ -e "$tree$library" ] || install -D "$library" "$tree$library"
    done < <(LD_LIBRARY_PATH=$libraries ldd "$file" 2> /dev/null |
        sed -n -e 's/^[[:space:]]*\(\/[^ ]*\) (0x.*/\1/p' -e 's/.* => \(\/[^ ]*\) (0x.*/\1/p' | grep -v -e libcuda -e libcudart)
}

# Lists the modules for the network in the order in which they must be loaded, and copies them into the tree $1.
put_modules() {
    local tree=$1 name file
    : > "$tree/modules"
    [ -d "${modules:-/nowhere}" ] || return 0
    for name in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci failover net_failover virtio_net; do
        file=$(find "$modules" -name "$name.ko" | sed -n 1p)
        [ -z "$file" ] || { install -D -m 644 "$file" "$tree/lib/modules/$name.ko"; echo "/lib/modules/$name.ko" >> "$tree/modules"; }
    done
}

# Makes the file $1 from the tree $2.
make_initramfs() {
    (cd "$2" && find . | cpio --quiet -o -H newc -R 0:0) > "$1"
}

# Starts a virtual machine with the name $1 and the further arguments for QEMU, and waits for its HELLO. Its console goes to
# $work/$1.console.
vm_start() {
    vm_name=$1
    shift
    mkfifo "$work/$vm_name.in" "$work/$vm_name.out"
    # This process keeps both ends open, so that neither side waits for the other and a reboot does not close a pipe.
    exec 5<> "$work/$vm_name.in" 6<> "$work/$vm_name.out"
    timeout -k 5 "$vm_limit" "$qemu" -nodefaults -no-user-config -display none -machine q35 -accel tcg,thread=multi -smp 2 -m 512 \
        -kernel "$kernel" -initrd "$work/initramfs" \
        -append "console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on rdinit=/init hawser.machine=$vm_name" \
        -serial "file:$work/$vm_name.console" -chardev "pipe,id=control,path=$work/$vm_name" -serial chardev:control "$@" \
        < /dev/null > "$work/$vm_name.qemu" 2>&1 5<&- 6<&- &
    vm_pid=$!
    vm_rest=
    vm_await_boot
}

vm_show() {
    tail -n 15 "$work/$vm_name.console" "$work/$vm_name.qemu" >&2 || true
}

# Reads a line from the guest into `line`, within $1 seconds.
vm_line() {
    local end=$((SECONDS + $1)) part
    while true; do
        if IFS= read -r -t 1 -u 6 part; then
            line=${vm_rest}${part%$'\r'} vm_rest=
            return 0
        fi
        vm_rest+=$part
        kill -0 "$vm_pid" 2> /dev/null || { vm_show; die "the virtual machine $vm_name has ended"; }
        [ $SECONDS -lt $end ] || return 1
    done
}

vm_await_boot() {
    local line=
    until [ "$line" = HELLO ]; do
        vm_line "$boot_limit" || { vm_show; die "the virtual machine $vm_name did not boot within $boot_limit s"; }
    done
}

# Runs a command in the guest, within $1 seconds; its output goes to the file $work/answer. Returns its status.
vm_run() {
    local limit=$1 end=$((SECONDS + $1)) line tag
    shift
    vm_count=$((vm_count + 1))
    tag=answer-$$-$vm_count
    printf '%s %s\n' "$tag" "$*" >&5
    : > "$work/answer"
    while true; do
        vm_line $((end - SECONDS)) || { cat "$work/answer" >&2; vm_show; die "not done within $limit s in the guest: $*"; }
        case $line in
            "$tag "*) return "${line#"$tag "}" ;;
            HELLO) vm_show; die "the virtual machine $vm_name rebooted during: $*" ;;
            ?*) printf '%s\n' "$line" >> "$work/answer" ;;
        esac
    done
}

# Sends a command that ends the guest, so that there is no answer.
vm_send() {
    printf 'nobody %s\n' "$*" >&5
}

# Waits for QEMU's end, within $1 seconds.
vm_await_end() {
    local end=$((SECONDS + $1))
    while kill -0 "$vm_pid" 2> /dev/null; do
        [ $SECONDS -lt $end ] || { vm_show; die "the virtual machine $vm_name did not end within $1 s"; }
        sleep 0.1 # `wait` has no limit
    done
    wait "$vm_pid" || { vm_show; die "QEMU ended with $?"; }
    vm_pid=
    exec 5>&- 6<&-
}

# Kills QEMU without a shutdown of the guest.
vm_kill() {
    [ -n "$vm_pid" ] || return 0
    kill -KILL "$(child_of "$vm_pid")" 2> /dev/null || kill "$vm_pid" 2> /dev/null || true
    wait "$vm_pid" 2> /dev/null || true
    vm_pid=
    exec 5>&- 6<&-
}
