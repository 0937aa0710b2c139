package io.hawser.gpu.software.dnn;

import io.hawser.cuda.Sizes;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A graph of operations, in an order in which each one finds its inputs. */
final class OperationGraph {
    private static final int ALIGNMENT = 256; // of a virtual tensor
    private static final int MAX_OPERATIONS = 64; // guest-chosen; ordering compares them with each other

    private final List<Operation> operations = new ArrayList<>();
    private final Map<Long, GraphTensor> tensors = new LinkedHashMap<>(); // by number
    private final Map<Long, Long> places = new HashMap<>(); // of virtual tensors in the workspace
    private long workspaceBytes;

    /** Orders the operations and checks the tensors between them. */
    OperationGraph(List<Operation> given) throws Refusal {
        Refusal.require(!given.isEmpty(), "a graph has operations");
        Refusal.support(given.size() <= MAX_OPERATIONS, "at most " + MAX_OPERATIONS + " operations");
        Map<Long, Operation> makers = new HashMap<>();
        for (Operation operation : given) {
            operation.inputs().forEach(t -> tensors.putIfAbsent(t.uid(), t));
            tensors.putIfAbsent(operation.output().uid(), operation.output());
            Refusal.require(makers.put(operation.output().uid(), operation) == null, "a tensor has one operation");
        }
        for (Operation operation : given) {
            for (GraphTensor input : operation.inputs()) {
                // The worker checks the memory of one tensor for each number.
                Refusal.require(input.equals(tensors.get(input.uid())), "tensors have numbers of their own");
                Refusal.require(!input.isVirtual() || makers.containsKey(input.uid()), "a virtual input is computed");
            }
            Refusal.require(operation.output().equals(tensors.get(operation.output().uid())),
                "tensors have numbers of their own");
        }
        order(given, makers);
        for (GraphTensor tensor : tensors.values()) {
            if (tensor.isVirtual()) {
                places.put(tensor.uid(), workspaceBytes);
                long bytes = Sizes.multiply(tensor.shape().extent(), Float.BYTES);
                workspaceBytes = Sizes.add(workspaceBytes, Sizes.add(bytes, ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
            }
        }
        Refusal.support(workspaceBytes < Sizes.MOST / 2, "virtual tensors that fit into memory");
    }

    private void order(List<Operation> given, Map<Long, Operation> makers) throws Refusal {
        List<Operation> waiting = new ArrayList<>(given);
        while (!waiting.isEmpty()) {
            Operation next = null;
            for (Operation operation : waiting) {
                if (operation.inputs().stream().noneMatch(t -> waiting.contains(makers.get(t.uid())))) {
                    next = operation;
                    break;
                }
            }
            Refusal.require(next != null, "a graph has no cycle");
            operations.add(next);
            waiting.remove(next);
        }
    }

    /** Bytes of device memory for virtual tensors. */
    long workspaceBytes() {
        return workspaceBytes;
    }

    /**
     * Finds the tensors of an execution.
     *
     * @param pointers by number: an address of device memory, or of a number on the host, which is read now.
     * @param workspace device memory of {@link #workspaceBytes}.
     * @return the work, for any thread.
     */
    Runnable bind(Map<Long, Long> pointers, long workspace) throws Refusal {
        Map<Long, Tensor> bound = new HashMap<>();
        for (GraphTensor tensor : tensors.values()) {
            long pointer = tensor.isVirtual() ? workspace : pointers.getOrDefault(tensor.uid(), 0L);
            Refusal.require(pointer != 0, "a tensor has an address: uid=" + tensor.uid());
            bound.put(tensor.uid(), tensor.isByValue() ? number(tensor, pointer)
                : Tensor.at(tensor.shape(), tensor.isVirtual() ? pointer + places.get(tensor.uid()) : pointer));
        }
        supportOrder(bound);
        return () -> {
            for (Operation operation : operations) {
                operation.kernel().run(operation.inputs().stream().map(t -> bound.get(t.uid())).toList(),
                    bound.get(operation.output().uid()));
            }
        };
    }

    /** Checks that no operation reads or writes where an earlier one has written another tensor. */
    private void supportOrder(Map<Long, Tensor> bound) throws Refusal {
        for (int i = 0; i < operations.size(); i++) {
            long made = operations.get(i).output().uid();
            Tensor output = bound.get(made);
            for (int j = i; j < operations.size(); j++) {
                Operation later = operations.get(j);
                for (GraphTensor input : later.inputs()) {
                    if (i == j && later.isPointwise()) {
                        Tensor.supportInPlace(output, bound.get(input.uid()));
                    } else if (input.uid() != made) {
                        Tensor.supportApart(output, bound.get(input.uid()));
                    }
                }
                if (i != j) {
                    Tensor.supportApart(output, bound.get(later.output().uid()));
                }
            }
        }
    }

    private static Tensor number(GraphTensor tensor, long pointer) {
        // SAFETY: the worker has copied a number of the tensor's type to its own memory.
        MemorySegment host = MemorySegment.ofAddress(pointer).reinterpret(Float.BYTES);
        return new Tensor(tensor.shape(), MemorySegment.ofArray(
            new float[] {host.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0)}));
    }
}
