package io.hawser.cuda.generator.model;

/**
 * A kind of handles.
 *
 * @param name upper case.
 * @param number on the wire, permanent.
 * @param special ids up to this are the library's constants and always legal; 0 for none.
 */
public record HandleKind(String name, int number, String doc, int special) {
}
