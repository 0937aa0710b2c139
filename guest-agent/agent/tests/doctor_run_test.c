/* hawser doctor PROGRAM ARGUMENT...: lines about libraries, from lists that a shell writes in the audit library's place. */
#include "tests/hws_test.h"

#include "doctor_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GUEST "/guest/lib" /* the folder of our libraries */

static hws_doctor_library_t broker[2];
static int broker_count;
static char site[256]; /* a folder of wheels: NAME-packages */

const hws_doctor_library_t *hws_doctor_libraries(int *count_p) {
    *count_p = broker_count;
    return broker;
}

bool hws_doctor_is_closed(const char *name) {
    return strncmp(name, "libnccl", 7) == 0;
}

void hws_doctor_check_code(const char *path, bool is_program) {
    HWS_CHECK(!is_program);
    hws_doctor_say("code", "%s", path);
}

static void write_file(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", site, name);
    FILE *file = fopen(path, "w");
    HWS_CHECK(file != NULL && fputs(text, file) >= 0);
    fclose(file);
}

static void make_folder(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", site, name);
    HWS_CHECK(mkdir(path, 0755) == 0);
}

/* Runs a shell, whose commands see the folder of wheels as $S and the list as $L. */
static void run(const char *commands) {
    char script[4096];
    snprintf(script, sizeof script, "S='%s' L=\"$HAWSER_LIBRARY_LIST\"; %s", site, commands);
    char *arguments[] = {"sh", "-c", script, NULL};
    report[0] = '\0';
    hws_doctor_run(arguments, GUEST);
}

static void expect(const char *line) {
    if (strstr(report, line) == NULL) {
        fprintf(stderr, "expected: %s\ngot:\n%s", line, report);
        abort();
    }
}

#define CUBLAS "printf 'replaced\\tlibcublas.so.12\\tlibcublas.so.12\\t%s/torch/lib/libtorch.so\\n' $S >> $L"
#define PLACE "/nvidia/cublas/lib/libcublas.so.12"

static void should_compare_the_versions_of_wheel_and_broker(void) {
    static const struct {
        const char *version, *level, *remark;
    } cases[] = {
        {"12.9.1.4", "ok", "; the broker has libcublas.so.13 12.9.1.4"},
        {"13.0.0.1", "ok", "; the broker has libcublas.so.13 13.0.0.1"},
        {"12.10", "ok", "; the broker has libcublas.so.13 12.10"},
        {"12.9.1", "WARN", "; the broker's libcublas.so.13 12.9.1 is older: "},
        {"12.9.1.3", "WARN", "; the broker's libcublas.so.13 12.9.1.3 is older: "},
        {"-", "ok", "; the broker has libcublas.so.13 -"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[1024];
        broker[0] = (hws_doctor_library_t) {"libcublasLt.so.13", "1"};
        broker[1] = (hws_doctor_library_t) {"libcublas.so.13", cases[i].version};
        broker_count = 2;
        run(CUBLAS);
        snprintf(line, sizeof line, "%s libcublas.so.12: ours, in place of %s" PLACE " 12.9.1.4%s", cases[i].level,
                 site, cases[i].remark);
        expect(line);
    }
}

static void should_name_a_library_that_the_broker_lacks(void) {
    broker_count = 1;
    run(CUBLAS);
    expect("WARN libcublas.so.12: ours, in place of ");
    expect("the broker has no such library");
    run("printf 'replaced\\tlibcuda.so.1\\tlibcuda.so.1\\t\\n' >> $L");
    expect("ok libcuda.so.1: ours\n"); /* needs none */
    broker_count = -1;
    run(CUBLAS);
    expect(PLACE " 12.9.1.4\n");
}

static void should_report_each_library_once(void) {
    broker_count = -1;
    run("for i in 1 2 3; do " CUBLAS "; printf 'loaded\\t/a/libx.so\\nloaded\\t/a/libnccl.so.2\\n' >> $L; done");
    expect("code /a/libx.so\n");
    expect("WARN /a/libnccl.so.2: Hawser does not serve this library yet");
    char *first = strstr(report, "libcublas.so.12: ours");
    HWS_CHECK(first != NULL && strstr(first + 1, "libcublas.so.12: ours") == NULL);
    run("printf 'replaced\\t%s" PLACE "\\tlibcublas.so.12\\t\\n' $S >> $L"); /* opened by its path */
    expect(PLACE " 12.9.1.4\n");
    run("printf 'replaced\\t/none/libcublas.so.12\\tlibcublas.so.12\\t\\n' >> $L");
    expect("ok libcublas.so.12: ours\n");
    run("printf 'loaded\\t" GUEST
        "/libnccl.so.2\\nloaded\\t/guest/libx.so\\n' >> $L"); /* ours, and no other folder's */
    HWS_CHECK(strstr(report, GUEST "/") == NULL);
    expect("code /guest/libx.so\n");
    run("printf '\\n\\t\\nreplaced\\nreplaced\\tx\\nloaded\\n' >> $L"); /* damaged lines */
    run("i=0; while [ $i -lt 600 ]; do echo \"loaded\t/l$i\"; i=$((i + 1)); done >> $L");
    expect("note 88 further libraries were not checked\n");
}

static void should_report_how_the_program_ends(void) {
    run("exit 0");
    HWS_CHECK(strcmp(report, "note running sh\n") == 0);
    run("exit 4");
    expect("FAIL sh: ended with exit code 4\n");
    run("kill -9 $$");
    expect("FAIL sh: ended by signal 9\n");
    char *none[] = {"/no/such/program", NULL};
    report[0] = '\0';
    hws_doctor_run(none, GUEST);
    expect("FAIL /no/such/program: No such file or directory\n");
}

int main(void) {
    char folder[] = "/tmp/doctor-run-test.XXXXXX";
    HWS_CHECK(mkdtemp(folder) != NULL);
    snprintf(site, sizeof site, "%s/site-packages", folder);
    static const char *const folders[] = {"",
                                          "nvidia",
                                          "nvidia/cublas",
                                          "nvidia/cublas/lib",
                                          "torch",
                                          "torch/lib",
                                          "nvidia_cublas_cu12-12.9.1.4.dist-info",
                                          "nvidia_nccl-2.dist-info"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        make_folder(folders[i]);
    }
    write_file(&PLACE[1], "");
    write_file("nvidia_nccl-2.dist-info/RECORD", "nvidia/cublas/lib/libcublas.so.12.other,,\n");
    write_file("nvidia_cublas_cu12-12.9.1.4.dist-info/RECORD", "a,,\nnvidia/cublas/lib/libcublas.so.12,sha256=x,1\n");
    should_compare_the_versions_of_wheel_and_broker();
    should_name_a_library_that_the_broker_lacks();
    should_report_each_library_once();
    should_report_how_the_program_ends();
    char clean[512];
    snprintf(clean, sizeof clean, "rm -r '%s'", folder);
    HWS_CHECK(system(clean) == 0);
    return 0;
}
