package io.hawser.broker.region;

import io.hawser.broker.door.DoorListener;
import io.hawser.broker.machine.LogLimiter;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.status.StatusSource;
import io.hawser.broker.vgpu.VgpuTable;
import io.netty.channel.EventLoop;

/**
 * Services and settings that all regions share.
 *
 * @param loop the event loop on which the regions run.
 * @param status of a vGPU, for the header of each region.
 * @param descriptionHash of the API that the workers implement.
 * @param folders below which REST may place regions.
 * @param sockets that brokers of this state folder created.
 */
record RegionContext(EventLoop loop, VgpuTable vgpus, SessionRegistry sessions, WorkerPools pools,
    StatusSource status, LogLimiter logLimiter, DoorListener listener, long descriptionHash, RegionFolders folders,
    MadeSockets sockets) {}
