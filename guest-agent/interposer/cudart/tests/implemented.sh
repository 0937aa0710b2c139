#!/bin/sh
# Checks that no name of the list is a stub that returns cudaErrorNotSupported: implemented.sh LIBRARY LIST
set -eu
stubs=$(nm -D --defined-only "$1" | awk '$2 == "W" { sub("@@.*", "", $3); print $3 }')
missing=$(grep -v '^#' "$2" | while read -r name; do echo "$stubs" | grep -x "$name" || true; done)
[ -z "$missing" ] || { echo "must be implemented, but are stubs:" $missing; exit 1; }
