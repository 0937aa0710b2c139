package io.hawser.broker.model;

/** Who a vGPU belongs to: only they change it. */
public enum Origin implements Labelled {
    /** {@code hawser.vgpus.NAME.*}; made or changed at start. */
    SETTINGS,
    /** REST. */
    REST
}
