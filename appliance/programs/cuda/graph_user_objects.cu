// Objects of the program that graphs keep alive, and the profiler's switches.
#include "check_cuda.h"

#include <atomic>
#include <cuda_profiler_api.h>
#include <sched.h>
#include <thread>

static std::atomic<int> destroyed[3];

static void destroy(void *pointer) {
    ++*static_cast<std::atomic<int> *>(pointer);
}

static std::atomic<bool> go_on;

static void wait_for_program(void *) {
    while (!go_on) {
        sched_yield();
    }
}

/* A destructor may run in a thread of the driver's, so the program waits for it; the runner ends a hung program. */
static void await_destroyed(int object) {
    while (destroyed[object] == 0) {
        sched_yield();
    }
    check_equal("the destructor runs once", 1, destroyed[object]);
}

static cudaUserObject_t make_object(int number, unsigned int references) {
    cudaUserObject_t object;
    destroyed[number] = 0;
    CUDA_OK(cudaUserObjectCreate(&object, &destroyed[number], destroy, references, cudaUserObjectNoDestructorSync));
    return object;
}

static cudaGraph_t make_graph(cudaUserObject_t kept) {
    cudaGraph_t graph;
    cudaGraphNode_t node;
    cudaHostNodeParams host = {wait_for_program, nullptr};
    CUDA_OK(cudaGraphCreate(&graph, 0));
    CUDA_OK(cudaGraphAddHostNode(&node, graph, nullptr, 0, &host));
    CUDA_OK(cudaGraphRetainUserObject(graph, kept, 1, cudaGraphUserObjectMove));
    return graph;
}

static void check_references() {
    cudaUserObject_t object = make_object(0, 2);
    CUDA_OK(cudaUserObjectRetain(object, 3));
    CUDA_OK(cudaUserObjectRelease(object, 4));
    check_equal("a reference is left", 0, destroyed[0]);
    CUDA_OK(cudaUserObjectRelease(object, 1));
    await_destroyed(0);
    object = make_object(0, 1);
    cudaGraph_t graph = make_graph(object), copy;
    CUDA_OK(cudaGraphClone(&copy, graph));
    CUDA_OK(cudaGraphDestroy(graph));
    check_equal("the copy has a reference", 0, destroyed[0]);
    CUDA_OK(cudaGraphReleaseUserObject(copy, object, 1));
    await_destroyed(0);
    CUDA_OK(cudaGraphDestroy(copy));
}

/* An executable graph keeps objects of its graph and of a child graph until its launches have ended. */
static void check_launches() {
    cudaStream_t stream;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;
    CUDA_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaGraph_t graph = make_graph(make_object(0, 1)), child = make_graph(make_object(1, 1));
    CUDA_OK(cudaGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
    CUDA_OK(cudaGraphInstantiate(&exec, graph, 0));
    CUDA_OK(cudaGraphDestroy(child));
    CUDA_OK(cudaGraphDestroy(graph));
    go_on = false;
    CUDA_OK(cudaGraphLaunch(exec, stream));
    std::thread destroyer([exec] { CUDA_OK(cudaGraphExecDestroy(exec)); }); // a driver may let it wait for the launch
    check_equal("the launch keeps the object", 0, destroyed[0]);
    check_equal("and the child's object", 0, destroyed[1]);
    go_on = true;
    destroyer.join();
    CUDA_OK(cudaStreamSynchronize(stream));
    await_destroyed(0);
    await_destroyed(1);
    CUDA_OK(cudaStreamDestroy(stream));
}

/* An update replaces the references by those of the other graph. */
static void check_update() {
    cudaGraphExec_t exec;
    cudaGraphExecUpdateResultInfo info;
    cudaGraph_t first = make_graph(make_object(0, 1)), second = make_graph(make_object(2, 1));
    CUDA_OK(cudaGraphInstantiate(&exec, first, 0));
    CUDA_OK(cudaGraphDestroy(first));
    CUDA_OK(cudaGraphExecUpdate(exec, second, &info));
    await_destroyed(0);
    CUDA_OK(cudaGraphDestroy(second));
    check_equal("the executable graph has a reference", 0, destroyed[2]);
    CUDA_OK(cudaGraphLaunch(exec, nullptr));
    CUDA_OK(cudaDeviceSynchronize());
    CUDA_OK(cudaGraphExecDestroy(exec));
    await_destroyed(2);
}

static void check_refusals() {
    cudaUserObject_t object = nullptr;
    CUDA_IS(cudaErrorInvalidValue, cudaUserObjectCreate(&object, nullptr, nullptr, 1, cudaUserObjectNoDestructorSync));
    CUDA_IS(cudaErrorInvalidValue, cudaUserObjectCreate(&object, nullptr, destroy, 0, cudaUserObjectNoDestructorSync));
    CUDA_IS(cudaErrorInvalidValue, cudaUserObjectCreate(&object, nullptr, destroy, 1, 0));
}

int main(int argc, char **argv) {
    check_begin(argc, argv);
    CUDA_OK(cudaProfilerStart());
    check_references();
    check_launches();
    check_update();
    check_refusals();
    CUDA_OK(cudaProfilerStop());
    return check_pass("references, launches, an update");
}
