package io.hawser.hypervisor.libvirt;

import com.sun.jna.Callback;
import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.Pointer;

/**
 * The functions of libvirt that libvirt-java 0.5.4 lacks: the events of devices and metadata, and detaching.
 * Names, numbers and meanings are libvirt's ({@code libvirt-domain.h}).
 */
interface LibvirtCalls extends Library {
    /** The library; libvirt-java has loaded it too. */
    LibvirtCalls LIBVIRT = Native.load("virt", LibvirtCalls.class);

    /** {@code VIR_DOMAIN_EVENT_ID_LIFECYCLE}. */
    int EVENT_LIFECYCLE = 0;
    /** {@code VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED}. */
    int EVENT_DEVICE_REMOVED = 15;
    /** {@code VIR_DOMAIN_EVENT_ID_DEVICE_ADDED}. */
    int EVENT_DEVICE_ADDED = 19;
    /** {@code VIR_DOMAIN_EVENT_ID_METADATA_CHANGE}. */
    int EVENT_METADATA_CHANGE = 23;

    /** {@code VIR_DOMAIN_METADATA_ELEMENT}. */
    int METADATA_ELEMENT = 2;
    /** {@code VIR_DOMAIN_AFFECT_LIVE}. */
    int AFFECT_LIVE = 1;
    /** {@code VIR_DOMAIN_AFFECT_CONFIG}. */
    int AFFECT_CONFIG = 2;
    /** {@code VIR_DOMAIN_XML_SECURE}. */
    int XML_SECURE = 1;
    /** {@code VIR_DOMAIN_XML_INACTIVE}. */
    int XML_INACTIVE = 2;

    /** {@code VIR_ERR_DEVICE_MISSING}: there is no such device. */
    int ERROR_DEVICE_MISSING = 99;

    /** Length of a UUID's text with its final NUL. */
    int UUID_TEXT_BYTES = 37;

    /** An event of a domain as a whole. */
    interface LifecycleCallback extends Callback {
        /** Runs in the event loop's thread. */
        int invoke(Pointer connection, Pointer domain, int event, int detail, Pointer opaque);
    }

    /** An event of one of a domain's devices. */
    interface DeviceCallback extends Callback {
        /** Runs in the event loop's thread. */
        void invoke(Pointer connection, Pointer domain, String alias, Pointer opaque);
    }

    /** A change of a domain's metadata. */
    interface MetadataCallback extends Callback {
        /** Runs in the event loop's thread. */
        void invoke(Pointer connection, Pointer domain, int type, String namespace, Pointer opaque);
    }

    /** Registers a callback for all domains; the caller keeps the callback reachable until the connection is closed. */
    int virConnectDomainEventRegisterAny(Pointer connection, Pointer domain, int event, Callback callback,
        Pointer opaque, Callback free);

    /** Ends a registration. */
    int virConnectDomainEventDeregisterAny(Pointer connection, int registration);

    /** Finds a domain; null if there is none. The caller frees it. */
    Pointer virDomainLookupByUUIDString(Pointer connection, String uuid);

    /** Frees the result of a look-up. */
    int virDomainFree(Pointer domain);

    /** Writes the domain's UUID and a final NUL. */
    int virDomainGetUUIDString(Pointer domain, byte[] text);

    String virDomainGetName(Pointer domain);

    /** Asks the guest to give the device with the alias back. */
    int virDomainDetachDeviceAlias(Pointer domain, String alias, int flags);

    /** Asks the guest to give the device of an element back. */
    int virDomainDetachDeviceFlags(Pointer domain, String xml, int flags);

    /** Number of this thread's last error. */
    int virGetLastErrorCode();

    /** Text of this thread's last error. */
    String virGetLastErrorMessage();
}
