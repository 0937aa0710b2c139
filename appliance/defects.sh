# shellcheck shell=sh
# The check of a broker's log at the end of every lane; sourced by sh and bash. A worker's lines are in its broker's log.

# Fails if the file $1 has lines that report a defect of the broker or a worker, and prints these lines. The texts are the worker's for a
# session that a defect ended, and those of Netty and Quarkus for unhandled exceptions.
no_defects() {
    [ -r "$1" ] || { echo "there is no log $1"; return 1; }
    ! grep -i -e 'internal error' -e 'a task raised an exception' -e 'an exception was thrown by' -e 'failed, error id' "$1"
}
