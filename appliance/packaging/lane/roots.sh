# shellcheck shell=bash disable=SC2034,SC2154 # variables of ../test
# The root folders of the lane `packages`. Sourced by ../test.

root_archive() { printf '%s' "$root/appliance/packaging/target/$1.tar"; }

# Fetches Debian $1 unless an earlier run has stored it. Needs the network, so it runs before lane_enter.
fetch_root() {
    local archive
    archive=$(root_archive "$1")
    [ ! -s "$archive" ] || return 0
    mkdir -p "${archive%/*}"
    if has mmdebstrap; then
        mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Retries "5"' --format=tar "$1" "$archive.part"
    else
        need debootstrap:mmdebstrap
        debootstrap --variant=minbase "$1" "$work/$1.new" > "$work/debootstrap.log"
        tar -C "$work/$1.new" -cf "$archive.part" .
        rm -rf "$work/$1.new"
    fi
    mv "$archive.part" "$archive"
}

# Makes the root folder $work/$1 of Debian $1.
make_root() {
    local folder=$work/$1 node
    mkdir -p "$folder"
    tar -C "$folder" --exclude=./dev/* -xf "$(root_archive "$1")"
    mount -t proc proc "$folder/proc"
    for node in null zero urandom random; do
        [ -e "$folder/dev/$node" ] || cp -a "/dev/$node" "$folder/dev/$node"
    done
    mkdir -p "$folder/dev/shm"
    mount -t tmpfs -o mode=1777,size=512M tmpfs "$folder/dev/shm"
    # The service manager would make the machine's id; here no services start.
    tr -d - < /proc/sys/kernel/random/uuid > "$folder/etc/machine-id"
    printf '#!/bin/sh\nexit 101\n' > "$folder/usr/sbin/policy-rc.d"
    chmod 755 "$folder/usr/sbin/policy-rc.d"
}

make_roots() {
    version=$(dpkg-deb -f "${deb[guest]}" Version)
    expect "a version of the tree sorts before the release" dpkg --compare-versions "$version" lt "${version%%~*}.1"
    make_root bullseye
    make_root bookworm
}

# Runs $2... in root folder $1.
within() {
    local folder=$1
    shift
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$folder" "$@"
}

# Whether the linker of root folder $1 knows a library, by a pattern. Without a pipe, which grep -q would break at its first match.
linker_knows() {
    within "$1" ldconfig -p > "$work/libraries" || die "ldconfig -p"
    grep -q "$2" "$work/libraries"
}

# Lists the files of root folder $1, except those that the installation of any package changes.
picture() {
    (cd "$1" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./tmp -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache \
        -o -path ./etc/ld.so.cache \) -prune -o \( -type f -printf '%p %m %U:%G %s\n' -o -printf '%p %y %m %U:%G %l\n' \) | sort)
}
compare_pictures() {
    diff "$1" "$2" > "$work/difference" || { result="$3 left files behind, or changed some: $(cat "$work/difference")"; return 1; }
}

# Repacks package file $1 as version $2 into folder $work/newer.
newer() {
    rm -rf "$work/unpacked"
    mkdir -p "$work/newer"
    dpkg-deb -R "$1" "$work/unpacked"
    sed -i "s/^Version: .*/Version: $2/; s/(= [^)]*)/(= $2)/" "$work/unpacked/DEBIAN/control"
    dpkg-deb --root-owner-group -Zgzip -z1 -b "$work/unpacked" "$work/newer/" > /dev/null
    rm -rf "$work/unpacked"
}
