// A preprocessor of mdBook: formulas between dollars become HTML by KaTeX, which scripts/book
// installs below target/. A formula that KaTeX does not understand ends the build. Links to a
// README lead to the page that the book makes of it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, posix } from "node:path";

const [, , command] = process.argv;
if (command === "supports") {
    process.exit(0);
}

const root = dirname(dirname(new URL(import.meta.url).pathname));
const katex = createRequire(`${root}/target/katex/`)("katex");

// What Markdown would read in the HTML of a formula as its own.
const plain = (html) =>
    html.replace(/[\\`*_[\]|~]/g, (sign) => `&#${sign.charCodeAt(0)};`).replace(/\s*\n\s*/g, " ");

function render(formula, displayMode, place) {
    try {
        return plain(katex.renderToString(formula, { displayMode, throwOnError: true, strict: "error" }));
    } catch (error) {
        console.error(`${place}: $${formula}$: ${error.message}`);
        process.exit(1);
    }
}

// Code, blocks and spans, stays as it is.
const pieces = /(^ *```[\s\S]*?^ *```|`[^`\n]*`)/m;
const formulas = /\$\$([^$]+)\$\$|\$([^\s$](?:[^$]*[^\s$])?)\$/g;

function page(text, path) {
    let found = 0;
    const parts = text.split(new RegExp(pieces, "gm")).map((part, number) => {
        if (number % 2 === 1) {
            return part;
        }
        const made = part.replace(formulas, (_, block, inline) => {
            found += 1;
            return render((block ?? inline).replace(/\s*\n\s*/g, " "), block !== undefined, path);
        });
        if (made.includes("$")) {
            console.error(`${path}: a dollar without its pair: ${made.slice(made.indexOf("$")).slice(0, 60)}`);
            process.exit(1);
        }
        return made;
    });
    if (found === 0) {
        return text;
    }
    const sheet = posix.relative(posix.dirname(path), "katex/katex.min.css");
    return `<link rel="stylesheet" href="${sheet}">\n\n${parts.join("")}`;
}

function walk(items) {
    for (const item of items ?? []) {
        const chapter = item.Chapter;
        if (chapter === undefined) {
            continue;
        }
        chapter.content = chapter.content.replace(/(\]\([^)\s]*)README\.md/g, "$1index.md");
        // Reports have dollars of their own, in the tokens of texts.
        if (chapter.path?.startsWith("docs/")) {
            chapter.content = page(chapter.content, chapter.path);
        }
        walk(chapter.sub_items);
    }
}

const [, book] = JSON.parse(readFileSync(0, "utf8"));
walk(book.items ?? book.sections);
process.stdout.write(JSON.stringify(book));
