# shellcheck shell=bash disable=SC2015,SC2034,SC2154 # variables of ansible/test
# The machines of the lane `ansible`. Sourced by ansible/test.

# Debian with the dependencies of SSH, Ansible and the packages, so that the machines need no access to Debian's servers.
# Made in memory, because dpkg waits for a disk after each file.
make_base() {
    local include=python3,python3-apt,openssh-server,systemd-sysv,dbus,openssl,ca-certificates,iproute2,procps
    include+=,dnf,python3-dnf,rpm
    local deb name made_from
    for deb in "${debs[@]}"; do
        while read -r name; do
            case $name in '' | hawser-*) ;; *) include+=,$name ;; esac
        done < <(dpkg-deb -f "$deb" Depends Pre-Depends | sed -e 's/^[A-Za-z-]*: //' | tr ',' '\n' |
            sed -e 's/|.*//' -e 's/(.*//' -e 's/[[:space:]]//g' -e 's/:any$//' | sort -u)
    done
    made_from=bookworm,$include
    if [ "$(cat "$base.made-from" 2> /dev/null)" != "$made_from" ]; then
        mkdir -p "$base.folder"
        rm -f "$base.made-from"
        say "$me: making the machines' Debian (once)"
        # shellcheck disable=SC2016 # expanded by mmdebstrap's shell
        unshare --mount --propagation private sh -ec '
            mount -t tmpfs -o mode=755 tmpfs "$1.folder"
            TMPDIR=$1.folder exec mmdebstrap --format=tar --variant=minbase --include="$2" --dpkgopt=force-unsafe-io \
                --aptopt="Acquire::Retries \"5\"" \
                --dpkgopt="path-exclude=/usr/share/man/*" --dpkgopt="path-exclude=/usr/share/doc/*" \
                --dpkgopt="path-exclude=/usr/share/locale/*" bookworm "$1.part"
            ' make "$base" "$include" > "$base.log" 2>&1 ||
            { tail -n 5 "$base.log" >&2; die "mmdebstrap failed"; }
        rmdir "$base.folder"
        mv "$base.part" "$base"
        printf '%s\n' "$made_from" > "$base.made-from"
    fi
}

# Starts machine $1 at the address $2 with the first process $3...
start_machine() {
    local name=$1 machines=$work/machines tree=$work/machines/$1
    mkdir -p "$machines/$name.upper" "$machines/$name.work" "$tree"
    mount -t overlay -o "lowerdir=$machines/base,upperdir=$machines/$name.upper,workdir=$machines/$name.work" \
        overlay "$tree"
    mkdir -p "$tree/root/.ssh"
    install -m 600 "$work/key.pub" "$tree/root/.ssh/authorized_keys"
    cp "$work/hosts" "$tree/etc/hosts"
    echo "$name" > "$tree/etc/hostname"
    # Debian's servers are not reachable. Older releases have no folder of keys.
    : > "$tree/etc/apt/sources.list"
    rm -rf "$tree/etc/apt/keyrings"
    ! declare -F "make_${name%%.*}" > /dev/null || "make_${name%%.*}" "$tree"
    # No login on a console, because the machine has none.
    ln -sf /dev/null "$tree/etc/systemd/system/console-getty.service"
    machine_start "$name" "$2" "$tree" "${@:3}"
}

# Changes the folder $1 into that of a machine with RPM: the files that Ansible reads identify it as such, and apt is
# removed.
make_el9() {
    rm -f "$1"/usr/bin/apt* "$1"/usr/bin/dpkg* "$1"/etc/debian_version "$1"/etc/os-release
    echo "AlmaLinux release 9.4 (Seafoam Ocelot)" > "$1/etc/redhat-release"
    printf '%s\n' 'NAME="AlmaLinux"' 'ID="almalinux"' 'ID_LIKE="rhel centos fedora"' 'VERSION_ID="9.4"' \
        > "$1/etc/os-release"
    mkdir -p "$1/etc/yum.repos.d"
    printf '[el9]\nname=Packages of a distribution, by name\nbaseurl=%s/el9\ngpgcheck=0\n' "$server" \
        > "$1/etc/yum.repos.d/el9.repo"
}

# Runs a command on machine $1 by SSH, as Ansible does.
on() {
    local name=$1
    shift
    ssh -n -i "$work/key" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \
        -o ConnectTimeout=60 "root@$name" "$@"
}

# As await, without the command's output.
await_quietly() { await "$@" > "$work/output" 2>&1; }

start_machines() {
    local name
    mkdir "$work/machines/base"
    tar -xf "$base" -C "$work/machines/base"
    ssh-keygen -q -t ed25519 -N '' -f "$work/key"
    make_bridge 10.78.0.254
    printf '%s\n' "127.0.0.1 localhost" "10.78.0.1 gpu1.example" "10.78.0.2 remote.example" "10.78.0.3 el9.example" \
        > "$work/hosts"
    mount --bind "$work/hosts" /etc/hosts
    start_machine gpu1.example 10.78.0.1 /lib/systemd/systemd --log-target=null
    start_machine remote.example 10.78.0.2 /lib/systemd/systemd --log-target=null
    start_machine el9.example 10.78.0.3 /usr/sbin/sshd -D
    for name in gpu1 remote el9; do await_quietly 900 on $name.example true; done
    await_quietly 900 on gpu1.example systemctl is-system-running
    result="systemd $(on gpu1.example systemctl --version | sed -n 's/^systemd \([0-9]*\).*/\1/p')"
}
