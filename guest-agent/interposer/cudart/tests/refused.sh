#!/bin/sh
# Checks that the stubs of a library are exactly its exports that the description lists as refused, with a reason:
# refused.sh LIBRARY EXPORTS REFUSED
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only "$1" | awk '$2 == "W" { sub("@@.*", "", $3); print $3 }' | LC_ALL=C sort > "$work/stubs"
[ -s "$work/stubs" ] || { echo "no stub is visible: $1"; exit 1; }
sed -n 's/^HWS_REFUSED(\(.*\))$/\1/p' "$3" | LC_ALL=C sort > "$work/listed"
LC_ALL=C sort "$2" | LC_ALL=C comm -12 - "$work/listed" > "$work/refused"
diff "$work/refused" "$work/stubs" || { echo "< listed as refused and not a stub, > a stub and not listed: $1"; exit 1; }
