# shellcheck shell=bash disable=SC2154 # root is the sourcing script's
# Shell functions of the scripts that lay out packages. Sourced by bash; the sourcing script sets `root`.

# Adds manual page $2 to tree $1, compressed as in packages.
put_manual() {
    local section=${2##*.}
    install -d "$1/usr/share/man/man$section"
    gzip -9nc "$2" > "$1/usr/share/man/man$section/$(basename "$2").gz"
    chmod 644 "$1/usr/share/man/man$section/$(basename "$2").gz"
}

# Adds the licence (file $3) and the changes of package $2 to tree $1; $4 is its version, $5 its maintainer.
put_documents() {
    local folder=$1/usr/share/doc/$2
    install -D -m 644 "$3" "$folder/copyright"
    gzip -9nc "$root/CHANGELOG.md" > "$folder/CHANGELOG.md.gz"
    {
        printf '%s (%s) unstable; urgency=medium\n\n  * Built from its sources; CHANGELOG.md.gz lists the changes.\n\n' "$2" "$4"
        printf ' -- %s  %s\n' "$5" "$(LC_ALL=C date -u -R -d @"${SOURCE_DATE_EPOCH:-1767225600}")"
    } | gzip -9nc > "$folder/changelog.gz"
    chmod 644 "$folder"/*
}

# Packs tree $1 as archive $2 for a Debian package. Units and rules are in /lib, where also a Debian 11 without a merged /usr finds them.
# Fixed times and a fixed order make the package reproducible.
make_deb_tar() {
    tar -C "$1" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@"${SOURCE_DATE_EPOCH:-1767225600}" \
        --transform 's,^\./usr/lib/\(systemd/\|udev/\),./lib/\1,;s,^\./usr/lib/\(systemd\|udev\)$,./lib/\1,' \
        --transform 's,^\./usr/share/zsh/site-functions,./usr/share/zsh/vendor-completions,' --hard-dereference --format=gnu -cf "$2" .
}
