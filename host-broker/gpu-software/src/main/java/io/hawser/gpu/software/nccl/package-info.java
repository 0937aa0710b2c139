/** NCCL on the software GPU: ranks of one worker exchange data in memory, ranks of several workers by loopback. */
package io.hawser.gpu.software.nccl;
