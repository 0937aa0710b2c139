package io.hawser.gpu.software.exec;

import java.lang.invoke.MethodHandles;

/** Defines generated classes as hidden ones of this package: they go when the last reference to their code goes. */
public final class CodeLoader {
    /** Binary name that a generated class gives itself. */
    public static final String CLASS_NAME = "io.hawser.gpu.software.exec.Kernel";

    private CodeLoader() {
    }

    /**
     * Defines a class and makes its one object.
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
