/** cuDNN of the software GPU: operations on tensors of floats, without a library of the machine. */
package io.hawser.gpu.software.dnn;
