#!/bin/sh
# Checks that the library's visible symbols are exactly those of the list. A missing symbol breaks programs that import
# it; a further one could replace a program's own. Usage: exports_test.sh LIBRARY LIST
set -eu
visible=$(mktemp)
trap 'rm -f "$visible"' EXIT
nm -D --defined-only "$1" | awk '{print $3}' | LC_ALL=C sort > "$visible"
[ -s "$visible" ] || { echo "no symbol is visible: $1" >&2; exit 1; }
LC_ALL=C sort "$2" | diff - "$visible" || { echo "< wanted and not visible, > visible and not wanted: $1" >&2; exit 1; }
