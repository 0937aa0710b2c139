package io.hawser.hypervisor.domain;

import java.util.UUID;

/** Domain XML as libvirt 9.0 writes it, reduced to the parts that the tests need. */
public final class Xml {
    private Xml() {
    }

    /** A running QEMU domain. */
    public static String domain(UUID uuid, String name, String metadata, String devices) {
        return """
            <domain type='kvm' id='7'>
              <name>%s</name>
              <uuid>%s</uuid>
              <metadata>
                <libosinfo:libosinfo xmlns:libosinfo="http://libosinfo.org/xmlns/libvirt/domain/1.0">
                  <libosinfo:os id="http://debian.org/debian/12"/>
                </libosinfo:libosinfo>
                %s
              </metadata>
              <memory unit='KiB'>2097152</memory>
              <vcpu placement='static'>2</vcpu>
              <os>
                <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>
              </os>
              <devices>
                <emulator>/usr/bin/qemu-system-x86_64</emulator>
                <controller type='pci' index='0' model='pcie-root'>
                  <alias name='pcie.0'/>
                </controller>
                %s
              </devices>
            </domain>
            """.formatted(name, uuid, metadata, devices);
    }

    /** The metadata with these attributes, as libvirt returns it. */
    public static String vgpu(String attributes) {
        return "<hawser:vgpu xmlns:hawser=\"urn:hawser:vgpu:1\" " + attributes + "/>";
    }

    public static String shmem(UUID uuid, long mebibytes) {
        return """
            <shmem name='hawser-%s'>
              <model type='ivshmem-plain'/>
              <size unit='M'>%d</size>
              <alias name='ua-hawser'/>
              <address type='pci' domain='0x0000' bus='0x03' slot='0x00' function='0x0'/>
            </shmem>
            """.formatted(uuid, mebibytes);
    }
}
