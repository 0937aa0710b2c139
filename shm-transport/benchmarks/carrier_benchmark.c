/* The guest side of appliance/benchmark: what calls and copies cost through Hawser, each beside a plain socket over loopback in the
 * same run. Prints one JSON object. `--first-kernel 1` measures only the time from the first call to the end of the first kernel;
 * `--max MiB` bounds the copies; `--hold 1` waits, once measured, until standard input ends, so that memory can be looked at. */
#include "check_driver.h"
#include "plain_socket.h"

#define SMALL_ROUNDS 3000
#define WARM_UP 300

static const char IMAGE[] = ".version 6.4\n.target sm_75\n.address_size 64\n"
        ".visible .entry four(.param .u64 a, .param .u64 b, .param .u32 c, .param .f32 d)\n{\n    ret;\n}\n";

static int compare(const void *a, const void *b) {
    double x = *(const double *) a, y = *(const double *) b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count) {
    qsort(values, (size_t) count, sizeof(double), compare);
    return values[count / 2];
}

static CUfunction load(void) {
    CUmodule module;
    CU_OK(cuModuleLoadData(&module, IMAGE));
    return check_function(module, "four");
}

static void launch(CUfunction function, CUstream stream) {
    CUdeviceptr a = 0, b = 0;
    int c = 1;
    float d = 2;
    CHECK_LAUNCH(function, 1, 1, 0, stream, &a, &b, &c, &d);
}

/* Seconds from the first CUDA call to the end of the first kernel: connect, context, image, launch, synchronise. */
static double first_kernel(void) {
    double start = check_seconds();
    check_context();
    launch(load(), NULL);
    CU_OK(cuCtxSynchronize());
    return check_seconds() - start;
}

static void round_trips(const plain_socket_t *plain, CUdeviceptr device) {
    static double query[SMALL_ROUNDS], copy_in[SMALL_ROUNDS], copy_out[SMALL_ROUNDS], socket[SMALL_ROUNDS];
    char bytes[64] = {0};
    /* In turns, so that whatever else the machine does falls on all alike. */
    for (int i = -WARM_UP; i < SMALL_ROUNDS; i++) {
        double at[5];
        at[0] = check_seconds();
        CU_OK(cuCtxSynchronize());
        at[1] = check_seconds();
        CU_OK(cuMemcpyHtoD(device, bytes, sizeof(bytes)));
        CU_OK(cuCtxSynchronize());
        at[2] = check_seconds();
        CU_OK(cuMemcpyDtoH(bytes, device, sizeof(bytes)));
        at[3] = check_seconds();
        plain_socket_exchange(plain, bytes, sizeof(bytes), sizeof(bytes));
        at[4] = check_seconds();
        if (i >= 0) {
            query[i] = at[1] - at[0];
            copy_in[i] = at[2] - at[1];
            copy_out[i] = at[3] - at[2];
            socket[i] = at[4] - at[3];
        }
    }
    double base = median(socket, SMALL_ROUNDS), q = median(query, SMALL_ROUNDS);
    double in = median(copy_in, SMALL_ROUNDS), out = median(copy_out, SMALL_ROUNDS);
    printf("  \"roundTripUs\": {\"plainSocket64\": %.2f, \"synchronize\": %.2f, \"copy64In\": %.2f, \"copy64Out\": %.2f, "
           "\"synchronizeMinusPlainUs\": %.2f, \"copy64OutMinusPlainUs\": %.2f},\n",
            base * 1e6, q * 1e6, in * 1e6, out * 1e6, (q - base) * 1e6, (out - base) * 1e6);
}

static void asynchronous(CUfunction function) {
    enum { EVENTS = 200000, LAUNCHES = 50000, BURSTS = 400, BURST = 64 };
    static double stub[BURSTS];
    CUstream stream;
    CUevent event;
    CU_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CU_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    double start = check_seconds();
    for (int i = 0; i < EVENTS; i++) {
        CU_OK(cuEventRecord(event, stream));
    }
    CU_OK(cuStreamSynchronize(stream));
    double events = EVENTS / (check_seconds() - start);
    start = check_seconds();
    for (int i = 0; i < LAUNCHES; i++) {
        launch(function, stream);
    }
    CU_OK(cuStreamSynchronize(stream));
    double launches = LAUNCHES / (check_seconds() - start);
    /* Short bursts with a wait between them: neither credit nor a full buffer holds the caller up, only the stub is measured. */
    for (int i = 0; i < BURSTS; i++) {
        start = check_seconds();
        for (int k = 0; k < BURST; k++) {
            launch(function, stream);
        }
        stub[i] = (check_seconds() - start) / BURST;
        CU_OK(cuStreamSynchronize(stream));
    }
    printf("  \"asynchronous\": {\"eventRecordsPerSecond\": %.0f, \"launchesPerSecond\": %.0f, \"launchStubNs\": %.0f},\n",
            events, launches, median(stub, BURSTS) * 1e9);
    CU_OK(cuEventDestroy(event));
    CU_OK(cuStreamDestroy(stream));
}

static void copies(const plain_socket_t *plain, size_t max_bytes) {
    char *host = check_memory(max_bytes);
    CUdeviceptr device = check_device(NULL, max_bytes);
    memset(host, 1, max_bytes);
    printf("  \"copies\": [");
    for (size_t bytes = 4096; bytes <= max_bytes; bytes *= 4) {
        enum { MOST = 200 };
        double in[MOST], out[MOST], socket_in[MOST], socket_out[MOST];
        int rounds = (int) ((256u << 20) / bytes);
        rounds = rounds < 3 ? 3 : rounds > MOST ? MOST : rounds;
        for (int i = -1; i < rounds; i++) {
            double at[5];
            at[0] = check_seconds();
            CU_OK(cuMemcpyHtoD(device, host, bytes));
            CU_OK(cuCtxSynchronize()); /* the copy may return when the bytes are taken; here they have arrived */
            at[1] = check_seconds();
            CU_OK(cuMemcpyDtoH(host, device, bytes));
            at[2] = check_seconds();
            plain_socket_exchange(plain, host, bytes, 32);
            at[3] = check_seconds();
            plain_socket_exchange(plain, host, 32, bytes);
            at[4] = check_seconds();
            if (i >= 0) {
                in[i] = at[1] - at[0];
                out[i] = at[2] - at[1];
                socket_in[i] = at[3] - at[2];
                socket_out[i] = at[4] - at[3];
            }
        }
        double size = (double) bytes / 1e6;
        double m[4] = {size / median(in, rounds), size / median(out, rounds), size / median(socket_in, rounds),
                size / median(socket_out, rounds)};
        printf("%s\n    {\"bytes\": %zu, \"h2dMBps\": %.0f, \"d2hMBps\": %.0f, \"plainOutMBps\": %.0f, \"plainInMBps\": %.0f, "
               "\"h2dRatio\": %.2f, \"d2hRatio\": %.2f}", bytes == 4096 ? "" : ",", bytes, m[0], m[1], m[2], m[3], m[0] / m[2],
                m[1] / m[3]);
        fflush(stdout);
    }
    printf("\n  ],\n");
    CU_OK(cuMemFree(device));
    free(host);
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    if (check_option("--first-kernel", 0)) {
        printf("{\"firstKernelMs\": %.1f}\n", first_kernel() * 1e3);
        return 0;
    }
    plain_socket_t plain = plain_socket_open();
    double first = first_kernel();
    CUfunction function = load();
    CUdeviceptr device = check_device(NULL, 4096);
    char name[256];
    CU_OK(cuDeviceGetName(name, sizeof(name), 0));
    printf("{\n  \"device\": \"%s\",\n", name);
    round_trips(&plain, device);
    asynchronous(function);
    copies(&plain, (size_t) check_option("--max", 256) << 20);
    printf("  \"firstKernelMs\": %.1f\n}\n", first * 1e3);
    fflush(stdout);
    plain_socket_close(&plain);
    if (check_option("--hold", 0)) {
        char byte;
        while (read(0, &byte, 1) > 0) {
        }
    }
    CU_OK(cuMemFree(device));
    return 0;
}
