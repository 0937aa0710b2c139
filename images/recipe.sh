# shellcheck shell=bash disable=SC1007,SC2016,SC2154
# Shell functions of the image recipes images/guest/make and images/gpu-domain/make. Sourced by bash; the sourcing script sets `root`
# and `me`, and the recipe's variables: `kind`, `kernel_package`, `packages` (array), `modules` (of the initial RAM disk),
# `releases`, `size`.

# shellcheck source=appliance/common.sh
. "$root/appliance/common.sh"

recipe_options() {
    cat <<TEXT
  --out FILE          the image (images/target/$kind-RELEASE.img); FILE.vmlinuz, FILE.initrd and FILE.packages lie beside it
  --release NAME      Debian's release: ${releases// /, } (bookworm)
  --size SIZE         of the image, which is sparse: 2G, 800M ($size)
  --package FILE.deb  a local package to install, with its dependencies; can be repeated
  --include A,B       further packages of Debian
  --components A,B    sections of Debian's archive (main)
  --mirror URL        Debian's archive (that of this machine's apt); one with a date in its address gives
                      the same packages again, with --no-updates
  --no-updates        the release without its updates and security updates
  --cache FOLDER      folder of fetched packages (images/target/debs)

The same packages and options give the same bytes; SOURCE_DATE_EPOCH is the date of all files in the image (the date of the last commit).
Needs root, and the Debian packages mmdebstrap and e2fsprogs.
TEXT
}

# Reads the options of a recipe.
recipe_arguments() {
    out= release=bookworm own=() include= components=main updates=1 mirror= cache=$root/images/target/debs
    while [ $# -gt 0 ]; do
        case $1 in
            -h|--help) usage; exit 0 ;;
            --no-updates) updates=0 ;;
            --out|--release|--size|--package|--include|--components|--mirror|--cache)
                [ $# -ge 2 ] || die "$1 needs a value"
                case $1 in
                    --out) out=$2 ;;
                    --release) release=$2 ;;
                    --size) size=$2 ;;
                    --package) own+=("$2") ;;
                    --include) include=$2 ;;
                    --components) components=$2 ;;
                    --mirror) mirror=$2 ;;
                    --cache) cache=$2 ;;
                esac
                shift ;;
            *) usage >&2; exit 2 ;;
        esac
        shift
    done
    case " $releases " in *" $release "*) ;; *) die "no such release for this image: $release (there are: $releases)" ;; esac
    # Debian's archive among apt's archives; this machine may run another distribution.
    mirror=${mirror:-$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2> /dev/null | sed -n 's#/debian/*$#/debian#p' | sed -n 1p)}
    [ -n "$mirror" ] || die "this machine's apt names no archive of Debian: name one with --mirror"
    [[ $size =~ ^[1-9][0-9]*[MG]$ ]] || die "a size must be a number with M or G: $size"
    out=${out:-$root/images/target/$kind-$release.img}
    local file
    for file in "${own[@]}"; do
        [[ -r $file && $file = *.deb ]] || die "the package cannot be read: $file"
    done
    [ "$(id -u)" = 0 ] || die "root is needed to make an image"
    for file in mmdebstrap mke2fs debugfs unshare; do
        command -v $file > /dev/null || die "$file is missing: install mmdebstrap and e2fsprogs"
    done
}

# Makes the image from Debian's packages, the packages of --package, and the files of images/KIND/tree.
recipe_make() {
    local started=$SECONDS work uuid
    # The image's files pass through a tmpfs that exists only during this function. A tmpfs lists a folder in the order of creation, which
    # becomes the image's order; the order on a disk would differ between runs.
    if [ -z "${HAWSER_RECIPE_INSIDE:-}" ]; then
        exec env HAWSER_RECIPE_INSIDE=1 unshare -m --propagation private -- "$0" "$@"
    fi
    recipe_arguments "$@"
    # The date of the last commit makes the image of a commit reproducible; without git the date is in 2026.
    export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2> /dev/null || echo 1767225600)}
    mkdir -p "$(dirname "$out")" "$cache/$release"
    # A lock: two recipes that fill one cache would copy each other's incomplete files.
    exec 7> "$cache/$release.lock"
    flock 7
    work=$(mktemp -d "${TMPDIR:-/tmp}/hawser-image.XXXXXX")
    # shellcheck disable=SC2064 # expands the folder's name now
    trap "umount -q '$work/files' || true; rm -rf '$work'" EXIT
    mkdir "$work/files" "$work/debs"
    local file
    for file in "${own[@]}"; do
        cp "$file" "$work/debs/"
    done
    say "$me: Debian $release, $(date -u -d "@$SOURCE_DATE_EPOCH" +%F), output in $out.log"
    recipe_bootstrap "$work" > "$out.log" 2>&1 || { tail -n 25 "$out.log" >&2; die "mmdebstrap failed; its output is in $out.log"; }
    mount -t tmpfs -o size=8G,mode=755 image "$work/files"
    tar -C "$work/files" --xattrs --xattrs-include='*' --numeric-owner -xpf "$work/files.tar"
    rm "$work/files.tar"
    cp "$work/files/boot/"vmlinuz-* "$out.vmlinuz"
    cp "$work/files/boot/"initrd.img-* "$out.initrd"
    chroot "$work/files" dpkg-query -W -f '${Package} ${Version} ${Architecture}\n' > "$out.packages"
    # Derived from the image's contents: by default the ids of the file system and of its folders' hashes are random.
    uuid=$(cat "$out.packages" - <<< "$kind $SOURCE_DATE_EPOCH" | sha256sum |
        sed 's/^\(.\{8\}\)\(.\{4\}\).\(.\{3\}\).\(.\{3\}\)\(.\{12\}\).*/\1-\2-4\3-8\4-\5/')
    rm -f "$out"
    truncate -s "$size" "$out"
    E2FSPROGS_FAKE_TIME=$SOURCE_DATE_EPOCH mke2fs -q -t ext4 -F -L hawser-root -U "$uuid" -m 1 -O '^metadata_csum_seed' \
        -E "hash_seed=$uuid,lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0" -d "$work/files" "$out" >> "$out.log" 2>&1 ||
        { tail -n 5 "$out.log" >&2; die "mke2fs failed: is --size $size enough? $(du -sm "$work/files" | cut -f 1) MiB of files"; }
    recipe_dates
    umount "$work/files"
    rm -rf "$work"
    trap - EXIT
    say "$me: $out: $(du -m "$out" | cut -f 1) MiB of $size, $(wc -l < "$out.packages") packages, $((SECONDS - started)) s"
}

# Runs mmdebstrap, which makes $1/files.tar.
recipe_bootstrap() {
    local work=$1 all=("${packages[@]}" "$kernel_package") suites=() with
    with=$(IFS=,; printf '%s' "${all[*]}")${include:+,$include}
    suites=("deb $mirror $release ${components//,/ }")
    if [ "$updates" = 1 ]; then
        suites+=("deb $mirror $release-updates ${components//,/ }" "deb ${mirror%/debian*}/debian-security $release-security ${components//,/ }")
    fi
    # In single quotes $1 is mmdebstrap's argument, the image's folder.
    timeout -k 10 3600 mmdebstrap --mode=root --variant=minbase --format=tar --include="$with" \
        --aptopt='Acquire::Retries "5"' --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
        --aptopt='Acquire::Check-Valid-Until "false"' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/info/*' \
        --skip=essential/unlink \
        --setup-hook='mkdir -p "$1/var/cache/apt/archives" "$1/etc/initramfs-tools"' \
        --setup-hook="sync-in $cache/$release /var/cache/apt/archives" \
        --setup-hook="echo hawser-$kind > \"\$1/etc/hostname\"; : > \"\$1/etc/resolv.conf\"" \
        --essential-hook="mkdir -p \"\$1/etc/initramfs-tools/conf.d\"; printf 'MODULES=list\nCOMPRESS=gzip\n' > \"\$1/etc/initramfs-tools/conf.d/hawser\"; \
            printf '%s\n' ${modules[*]} > \"\$1/etc/initramfs-tools/modules\"" \
        --customize-hook="copy-in $work/debs /tmp" \
        --customize-hook='set -- "$1" "$1"/tmp/debs/*.deb; if [ -e "$2" ]; then chroot "$1" sh -c "DEBIAN_FRONTEND=noninteractive \
            apt-get install -y --no-install-recommends /tmp/debs/*.deb"; fi' \
        --customize-hook='rm -f "$1"/var/cache/apt/archives/partial/*' \
        --customize-hook="sync-out /var/cache/apt/archives $cache/$release" \
        --customize-hook="cp -r --no-preserve=ownership,timestamps \"$root/images/$kind/tree/.\" \"\$1/\"" \
        --customize-hook="echo hawser-$kind > \"\$1/etc/hostname\"; printf '127.0.0.1 localhost\n127.0.1.1 hawser-$kind\n' > \"\$1/etc/hosts\"" \
        --customize-hook='ln -sf /run/systemd/resolve/resolv.conf "$1/etc/resolv.conf"' \
        --customize-hook='chroot "$1" systemctl enable systemd-networkd.service '"${services[*]:-}" \
        --customize-hook='chroot "$1" passwd -q -l root' \
        --customize-hook='for link in "$1"/vmlinuz* "$1"/initrd.img*; do rm -f "$link"; done' \
        --customize-hook='rm -f "$1"/var/lib/systemd/random-seed "$1"/var/lib/systemd/credential.secret "$1"/etc/ssh/ssh_host_*' \
        --customize-hook='rm -rf "$1"/var/log/*.log "$1"/var/log/apt "$1"/var/cache/debconf/*-old "$1"/var/lib/dpkg/*-old' \
        "$release" "$work/files.tar" "${suites[@]}" && rm -f "$cache/$release/lock"
}

# Sets one date of change and access for all files of the image; mke2fs copies these dates from its input, where they are today's.
recipe_dates() {
    local inodes
    inodes=$(debugfs -R 'stats -h' "$out" 2> /dev/null | sed -n 's/^Inode count: *//p')
    [ -n "$inodes" ] || die "debugfs does not read the image $out"
    # mke2fs numbers the used inodes consecutively from the first on.
    inodes=$((inodes - $(debugfs -R 'stats -h' "$out" 2> /dev/null | sed -n 's/^Free inodes: *//p')))
    for ((inode = 2; inode <= inodes; inode++)); do
        printf 'sif <%d> atime @%d\nsif <%d> ctime @%d\n' $inode "$SOURCE_DATE_EPOCH" $inode "$SOURCE_DATE_EPOCH"
    done | E2FSPROGS_FAKE_TIME=$SOURCE_DATE_EPOCH debugfs -w -f - "$out" > /dev/null 2>> "$out.log"
}
