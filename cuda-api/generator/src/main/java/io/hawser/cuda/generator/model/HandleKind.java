package io.hawser.cuda.generator.model;

/**
 * A kind of handle.
 *
 * @param name upper case.
 * @param number number on the wire, permanent.
 * @param special ids from 0 to this are the library's constants and always legal; 0 for none.
 */
public record HandleKind(String name, int number, String doc, int special) {
}
