package io.hawser.cuda.generator.model;

import java.util.Locale;

/**
 * Functions that differ only in the type of their numbers or in the width of their integers: one method of the backend
 * serves all of them.
 *
 * @param name the backend's method: the symbol with T in place of the form's letter, without _64.
 * @param form the letter of the number's type; null for a function without forms.
 * @param isWide whether this function has the suffix _64.
 * @param hasWide whether the family has functions with that suffix.
 */
public record Family(String name, String form, boolean isWide, boolean hasWide) {
    /** The constant of the generated enumeration of forms. */
    public String constant() {
        return form.toUpperCase(Locale.ROOT);
    }
}
