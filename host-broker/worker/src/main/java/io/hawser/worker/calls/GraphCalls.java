package io.hawser.worker.calls;

import io.hawser.cuda.CallContext;
import io.hawser.cuda.generated.GraphManualCalls;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.worker.session.CudaResult;
import java.lang.foreign.MemorySegment;

/** Graphs: no backend offers them yet, so that no graph comes into being. */
final class GraphCalls implements GraphManualCalls {
    private static void refuse(CallContext call) {
        call.finish(CudaResult.NOT_SUPPORTED);
    }

    @Override
    public void hwsGraphCreate(CallContext call, long graphId, int flags) {
        call.registerFailed(HandleKind.GRAPH, graphId);
        refuse(call);
    }

    @Override
    public void hwsGraphDestroy(CallContext call, long graph, long graphId) {
        refuse(call);
    }

    @Override
    public void hwsGraphAddNodes(CallContext call, long graph, int nodeCount, int blobBytes, MemorySegment blob) {
        refuse(call);
    }

    @Override
    public void hwsGraphSetNodes(CallContext call, long graph, int nodeCount, int blobBytes, MemorySegment blob) {
        refuse(call);
    }

    @Override
    public void hwsGraphAddAlloc(CallContext call, long graph, int index, int device, long bytesize,
            int dependencyCount, MemorySegment dependencies, int accessCount, MemorySegment accessDescs) {
        refuse(call);
    }

    @Override
    public void hwsGraphAddEdges(CallContext call, long graph, int linkCount, MemorySegment links) {
        refuse(call);
    }

    @Override
    public void hwsGraphRemoveEdges(CallContext call, long graph, int linkCount, MemorySegment links) {
        refuse(call);
    }

    @Override
    public void hwsGraphRemoveNode(CallContext call, long graph, int index) {
        refuse(call);
    }

    @Override
    public void hwsGraphInstantiate(CallContext call, long execId, long graph, long flags) {
        call.registerFailed(HandleKind.GRAPH_EXEC, execId);
        refuse(call);
    }

    @Override
    public void hwsGraphExecUpdate(CallContext call, long exec, long graph) {
        refuse(call);
    }

    @Override
    public void hwsGraphExecDestroy(CallContext call, long exec, long execId) {
        refuse(call);
    }

    @Override
    public void hwsGraphExecSetNode(CallContext call, long exec, long graph, int blobBytes, MemorySegment blob) {
        refuse(call);
    }

    @Override
    public void hwsGraphExecSetKernel(CallContext call, long exec, long graph, int blobBytes, MemorySegment blob) {
        refuse(call);
    }

    @Override
    public void hwsGraphEnable(CallContext call, long exec, long graph, int index, int enabled) {
        refuse(call);
    }

    @Override
    public void hwsGraphNodeWrite(CallContext call, long callbackId, long offset, long byteCount, MemorySegment data) {
        refuse(call);
    }

    @Override
    public void hwsGraphNodeRead(CallContext call, long callbackId, long offset, int byteCount) {
        refuse(call);
    }

    @Override
    public void cuGraphLaunch(CallContext call, long hGraphExec, long hStream) {
        refuse(call);
    }

    @Override
    public void cuGraphUpload(CallContext call, long hGraphExec, long hStream) {
        refuse(call);
    }

    @Override
    public void cuDeviceGraphMemTrim(CallContext call, int device) {
        refuse(call);
    }

    @Override
    public void hwsGraphMemGetAttribute(CallContext call, int device, int attr) {
        refuse(call);
    }

    @Override
    public void hwsGraphMemSetAttribute(CallContext call, int device, int attr, long value) {
        refuse(call);
    }
}
