/** The carrier through a mirror: memory that two machines keep alike by RDMA. */
package io.hawser.worker.channel.rdma;
