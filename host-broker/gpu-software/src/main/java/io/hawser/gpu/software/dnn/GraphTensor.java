package io.hawser.gpu.software.dnn;

/**
 * A tensor of a graph.
 *
 * @param isVirtual it exists only within an execution, in the plan's workspace.
 * @param isByValue its number comes with each execution.
 */
record GraphTensor(long uid, Shape shape, boolean isVirtual, boolean isByValue) {
}
