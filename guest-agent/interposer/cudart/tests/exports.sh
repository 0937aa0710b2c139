#!/bin/sh
# Checks that the library exports exactly the names of its list, all with its own version node.
# exports.sh LIBRARY LIST NODE
set -eu
wanted=$(sort "$2")
got=$(nm -D --defined-only "$1" | awk -v node="$3" '$2 != "A" && $3 ~ "@@" node "$" { sub("@@.*", "", $3); print $3 }' | sort)
other=$(nm -D --defined-only "$1" | awk -v node="$3" '$2 != "A" && $3 !~ "@@" node "$"')
if [ "$wanted" != "$got" ] || [ -n "$other" ]; then
    echo "exports differ from $2:" "$other"
    echo "$wanted" > wanted.$$; echo "$got" | diff wanted.$$ - || true; rm -f wanted.$$
    exit 1
fi
readelf -d "$1" | grep -q "SONAME.*\[$3\]" || { echo "soname must be $3"; exit 1; }
readelf -d "$1" | grep -q 'RUNPATH.*\[\$ORIGIN\]' || { echo "RUNPATH must be \$ORIGIN"; exit 1; }
