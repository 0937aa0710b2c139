package io.hawser.gpu.software.device;

import static io.hawser.cuda.generated.CUresult.*;

import io.hawser.cuda.backend.GraphNode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.Supplier;

/**
 * Graphs of what libraries do: their functions in a stream that captures form a sequence of nodes. Other work is
 * refused there and ends the capture. Decoder's thread only.
 */
final class GraphCaptures {
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

    private final Graphs graphs;

    GraphCaptures(Graphs graphs) {
        this.graphs = graphs;
    }

    int begin(Stream stream) {
        if (stream == null || stream.capture() != null) {
            return stream == null ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_ILLEGAL_STATE;
        }
        stream.capture(graphs.make());
        return CUDA_SUCCESS;
    }

    int add(Stream stream, Supplier<Runnable> routine) {
        if (stream.isCaptureInvalid()) {
            return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        }
        append(stream.capture(), routine);
        return CUDA_SUCCESS;
    }

    private void append(Graph graph, Supplier<Runnable> routine) {
        Graph.Node node = new Graph.Node(graph, new GraphNode.Empty());
        node.routine = routine;
        boolean isNew = graph.nodes.isEmpty() || Graph.link(graph.nodes.getLast(), node);
        assert isNew;
        graphs.append(node);
    }

    int end(Stream stream, MemorySegment out) {
        Graph graph = stream == null ? null : stream.capture();
        if (graph == null) {
            return CUDA_ERROR_ILLEGAL_STATE;
        }
        boolean isInvalid = stream.isCaptureInvalid();
        stream.capture(null);
        if (isInvalid) {
            graphs.forget(graph);
            return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        }
        out.set(LONG, 0, graph.handle);
        out.set(LONG, Long.BYTES, graph.nodes.size());
        out.set(LONG, 2L * Long.BYTES, 0); // functions of the worker allocate no memory of the device
        return CUDA_SUCCESS;
    }

    int copy(Graph graph, MemorySegment out) {
        if (graph == null || graph.nodes.stream().anyMatch(node -> node.routine == null)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        Graph copy = graphs.make();
        graph.nodes.forEach(node -> append(copy, node.routine));
        out.set(LONG, 0, copy.handle);
        return CUDA_SUCCESS;
    }
}
