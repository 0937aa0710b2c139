package io.hawser.cuda.generator.yaml;

import com.fasterxml.jackson.annotation.JsonProperty;
import java.util.List;
import java.util.Map;

/**
 * A library's {@code library.yaml}.
 *
 * @param library name, lower case: the folder, and part of C file names.
 * @param number upper half of its opcodes.
 * @param uses an earlier library whose types this one uses; null for none.
 * @param soname file of the machine's own library, as the loader finds it.
 * @param javaName prefix of Java class names.
 * @param javaPackage package of its Java classes; null for {@code io.hawser.cuda.generated}.
 * @param versions false: the library's header names no version in which a function appeared; default true.
 * @param result its result type.
 * @param errors results that generated guest code returns by itself.
 * @param guestHeader header of the guest's hand-written code, for generated stubs.
 * @param types files of types.
 * @param groups files of functions.
 * @param unsupported file of exports without a description; null for none.
 * @param foreign file of the classes of functions that the worker calls in the machine's own library; null for none.
 * @param forms forms of functions: a letter and the texts that it stands for; null for none.
 * @param move {@code move} of functions that neither create nor end a handle and do not say it; null for pins.
 * @param foreignObjects whether such a class has an object for each loaded library; else it loads {@code soname}.
 */
public record LibraryYaml(String library, int number, String uses, @JsonProperty(required = true) String soname,
    String javaName, String javaPackage, Boolean versions, String result, Errors errors,
    String guestHeader, List<String> types, List<String> groups, String unsupported, String foreign,
    Map<String, Map<String, String>> forms, String move, boolean foreignObjects) {

    /**
     * Enumerators of the result type.
     *
     * @param lost result after the loss of the session; null for a library whose results are CUresults.
     */
    public record Errors(String invalidValue, String invalidHandle, String outOfMemory, String notSupported,
        String lost) {
    }
}
