package io.hawser.hypervisor.libvirt;

import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.HypervisorException.Reason;
import org.libvirt.Error;
import org.libvirt.LibvirtException;

/** Translates libvirt's errors into {@link HypervisorException}. */
final class Failures {
    private Failures() {}

    /**
     * Translates an error.
     *
     * @param what the failure in words: "the device cannot be added to domain a".
     * @param lost whether the connection has ended.
     */
    static HypervisorException of(String what, LibvirtException failed, boolean lost) {
        Error error = failed.getError();
        String message = error == null || error.getMessage() == null ? String.valueOf(failed.getMessage())
            : error.getMessage();
        return new HypervisorException(lost ? Reason.DISCONNECTED : reason(error), what + ": " + message, failed);
    }

    /** Translates this thread's last error of a call of {@link LibvirtCalls}. */
    static HypervisorException last(String what, boolean lost) {
        return new HypervisorException(lost ? Reason.DISCONNECTED : Reason.REFUSED, what + ": "
            + LibvirtCalls.LIBVIRT.virGetLastErrorMessage());
    }

    private static Reason reason(Error error) {
        if (error == null || error.getCode() == null) {
            return Reason.REFUSED;
        }
        return switch (error.getCode()) {
            case VIR_ERR_NO_DOMAIN -> Reason.NO_DOMAIN;
            // libvirt has no error number for "domain is not running".
            case VIR_ERR_OPERATION_INVALID -> error.getMessage() != null && error.getMessage().contains("not running")
                ? Reason.NOT_RUNNING : Reason.REFUSED;
            case VIR_ERR_OPERATION_TIMEOUT, VIR_ERR_AGENT_UNRESPONSIVE -> Reason.TIMEOUT;
            case VIR_ERR_NO_CONNECT, VIR_ERR_INVALID_CONN -> Reason.DISCONNECTED;
            default -> Reason.REFUSED;
        };
    }
}
