package io.hawser.broker.session;

/**
 * Who asks for a session. All but the vGPU and the address is what the guest says of itself: for people, never for
 * decisions.
 *
 * @param keyId the token that it proved.
 * @param vgpu the share that the token opens.
 * @param address its IP address.
 * @param port its TCP port.
 * @param pid its process id, in its own machine.
 * @param program its program's name.
 * @param host its machine's name.
 */
public record Guest(String keyId, String vgpu, String address, int port, long pid, String program, String host) {
    /** Address and port. */
    public String peer() {
        return address.indexOf(':') >= 0 ? "[" + address + "]:" + port : address + ":" + port;
    }
}
