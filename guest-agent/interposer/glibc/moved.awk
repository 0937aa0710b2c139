# Writes the C file or the version script of a stand-in for linking: it has only the names and versions that moved.txt
# lists for one old library. awk -v library=libpthread.so.0 -v want=c|map -f moved.awk moved.txt
$1 == library {
    if (want == "c") {
        print "void " $3 "(void) {}"
    } else if (!($2 in names)) {
        versions[++count] = $2
    }
    names[$2] = names[$2] " " $3 ";"
}
END {
    for (i = 1; want == "map" && i <= count; i++) {
        print versions[i] " { global:" names[versions[i]] (i == 1 ? " local: *;" : "") " };"
    }
}
