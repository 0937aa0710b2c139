# Writes a CUDA runtime whose functions return a number: awk -v value=99 -v attribute='...' -f runtime.awk exports-13.txt
# A file of other code defines the functions of "but".
BEGIN {
    count = split(but, listed, " ")
    for (i = 1; i <= count; i++) {
        left[listed[i]] = 1
    }
}
!/^#/ && !($1 in left) {
    print attribute " int " $1 "(void); int " $1 "(void) { return " value "; }"
}
