package io.hawser.reference;

/** A document that has the same parts as a Markdown page and as a manual page. Text is Markdown of one paragraph. */
public interface Sheet {
    /** Begins a section. */
    Sheet section(String title);

    /** Begins a part of a section. */
    Sheet part(String title);

    /** Adds paragraphs; an empty line separates two. */
    Sheet prose(String prose);

    /** Adds a term, such as an option, with its meaning. */
    Sheet term(String term, String meaning);

    /** Returns the document. */
    String text();
}
