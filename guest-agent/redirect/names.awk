# Writes a line for each function of the CUDA runtime with the versions that have it: bit 0 for CUDA 11, bit 1 for 12,
# bit 2 for 13. awk -f names.awk names-11.txt exports-12.txt exports-13.txt
FNR == 1 { bit = bit == 0 ? 1 : 2 * bit }
!/^#/ { versions[$1] += bit }
END {
    for (name in versions) {
        print "HWS_RUNTIME_NAME(\"" name "\", " versions[name] ")"
    }
}
