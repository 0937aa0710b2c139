# Writes the linker's version script from an export list; -v node=libcudart.so.13
BEGIN { print node " {\n    global:" }
NF { print "        " $1 ";" }
END { print "    local:\n        *;\n};" }
