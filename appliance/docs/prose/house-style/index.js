// Checks the sentences of the documents: length, subject, phrases. Options in .textlintrc.json: maxWords; starts, with
// which a sentence of more than shortWords words must not begin; phrases, which no sentence may contain.
"use strict";

module.exports = (context, options) => {
    const { Syntax, RuleError, report, locator } = context;
    const starts = new RegExp(`^["'*_(]*(?:${options.starts.join("|")})\\b`, "i");
    const phrases = options.phrases.map(({ pattern, instead }) => (
        { pattern: new RegExp(`\\b(?:${pattern})\\b`, "i"), instead }));

    // A span of code counts as one word; the targets of links, tags and text in parentheses do not count.
    const plain = text => text.replace(/`[^`]*`/g, "x").replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
        .replace(/<[^>]{1,80}>/g, "").replace(/\([^()]*\)/g, "");

    const checkPart = (text, complain) => {
        const words = text.split(/\s+/).filter(word => /\w/.test(word));
        if (words.length > options.maxWords) {
            complain(`a sentence, or its part up to a colon or semicolon, has at most ${options.maxWords} words: `
                + `words=${words.length}`);
        }
        if (words.length > options.shortWords && starts.test(text)) {
            complain(`a sentence's subject is a noun that names the thing: begins with "${words[0]}"`);
        }
        for (const { pattern, instead } of phrases) {
            const found = pattern.exec(text);
            if (found !== null) {
                complain(`"${found[0]}": ${instead}`);
            }
        }
    };

    const check = (node, sentence) => {
        const complain = message => report(node, new RuleError(message, {
            padding: locator.range([sentence.range[0], sentence.range[0] + 1])
        }));
        plain(sentence.raw).trim().split(/(?<=[;:])\s+/).forEach(part => checkPart(part, complain));
    };

    const paragraph = async node => {
        const { splitAST, SentenceSplitterSyntax } = await import("sentence-splitter");
        for (const child of splitAST(node).children) {
            if (child.type === SentenceSplitterSyntax.Sentence) {
                check(node, { raw: child.raw, range: [child.range[0] - node.range[0], child.range[1] - node.range[0]] });
            }
        }
    };
    return { [Syntax.Paragraph]: paragraph };
};
