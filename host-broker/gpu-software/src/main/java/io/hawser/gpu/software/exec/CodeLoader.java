package io.hawser.gpu.software.exec;

import java.lang.invoke.MethodHandles;

/**
 * Defines generated classes as hidden classes of this package: the JVM unloads them with the last reference to their
 * code.
 */
public final class CodeLoader {
    /** The binary name in a generated class. */
    public static final String CLASS_NAME = "io.hawser.gpu.software.exec.Kernel";

    private CodeLoader() {
    }

    /**
     * Defines a class and creates its only instance.
     *
     * @param classFile made by the translator.
     * @param globals   available to the class as its class data.
     */
    public static KernelCode load(byte[] classFile, Globals globals) {
        try {
            return (KernelCode) MethodHandles.lookup().defineHiddenClassWithClassData(classFile, globals, true)
                .lookupClass().getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException e) {
            throw new AssertionError("generated class must load", e);
        }
    }
}
