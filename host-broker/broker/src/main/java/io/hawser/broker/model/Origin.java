package io.hawser.broker.model;

/** The origin of a vGPU: only its origin can change it. */
public enum Origin implements Labelled {
    /** {@code hawser.vgpus.NAME.*}; created or changed at the broker's start. */
    SETTINGS,
    /** REST. */
    REST
}
