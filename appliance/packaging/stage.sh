# shellcheck shell=bash disable=SC2154 # root is the sourcing script's
# Shell functions of the scripts that lay out packages. Sourced by bash; the sourcing script sets `root`.

# Tree $1 gets manual page $2, compressed as packages have it.
put_manual() {
    local section=${2##*.}
    install -d "$1/usr/share/man/man$section"
    gzip -9nc "$2" > "$1/usr/share/man/man$section/$(basename "$2").gz"
    chmod 644 "$1/usr/share/man/man$section/$(basename "$2").gz"
}

# Tree $1 gets what belongs to each package $2: licence (from file $3), changes; $4 is its version, $5 its maintainer.
put_documents() {
    local folder=$1/usr/share/doc/$2
    install -D -m 644 "$3" "$folder/copyright"
    gzip -9nc "$root/CHANGELOG.md" > "$folder/CHANGELOG.md.gz"
    {
        printf '%s (%s) unstable; urgency=medium\n\n  * Built from its sources; CHANGELOG.md.gz has what is new.\n\n' "$2" "$4"
        printf ' -- %s  %s\n' "$5" "$(LC_ALL=C date -u -R -d @"${SOURCE_DATE_EPOCH:-1767225600}")"
    } | gzip -9nc > "$folder/changelog.gz"
    chmod 644 "$folder"/*
}

# Tree $1 as archive $2 for a Debian package: units and rules lie in /lib there, where also a Debian 11 without a merged /usr looks. One
# time and one order, so that the same sources give the same package.
make_deb_tar() {
    tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@"${SOURCE_DATE_EPOCH:-1767225600}" \
        --transform 's,^\./usr/lib/\(systemd/\|udev/\),./lib/\1,;s,^\./usr/lib/\(systemd\|udev\)$,./lib/\1,' \
        --transform 's,^\./usr/share/zsh/site-functions,./usr/share/zsh/vendor-completions,' --hard-dereference --format=gnu -cf "$2" .
}
