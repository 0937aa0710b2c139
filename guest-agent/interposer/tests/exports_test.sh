#!/bin/sh
# The library's visible symbols must be exactly those of the list: one missing breaks programs that import it, one more
# could take the place of a program's own. Usage: exports_test.sh LIBRARY LIST
set -eu
visible=$(mktemp)
trap 'rm -f "$visible"' EXIT
nm -D --defined-only "$1" | awk '{print $3}' | LC_ALL=C sort > "$visible"
[ -s "$visible" ] || { echo "no symbol is visible: $1" >&2; exit 1; }
LC_ALL=C sort "$2" | diff - "$visible" || { echo "< wanted and not visible, > visible and not wanted: $1" >&2; exit 1; }
