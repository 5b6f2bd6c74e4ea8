//! Reads which items the files of a crate use of each other, from their text.

use std::collections::BTreeMap;

/// The files of a crate, by module path with `/`, `""` for the root.
pub struct Crate {
    pub files: BTreeMap<String, Module>,
}

/// What one file says.
#[derive(Default)]
pub struct Module {
    /// Modules that are files of their own.
    children: Vec<String>,
    /// Paths used, with the inline modules that they stand in.
    paths: Vec<Used>,
}

struct Used {
    inline: Vec<String>,
    path: Vec<String>,
    /// The name that a `use` gives, and whether it is `pub`.
    name: Option<(String, bool)>,
}

/// One file uses an item of another.
#[derive(Debug)]
pub struct Import {
    pub from: String,
    pub file: String,
    /// The item, or nothing where the module itself is named.
    pub item: String,
}

impl Crate {
    /// Reads `lib.rs` and every file that it leads to, tests left out.
    pub fn read(source: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut files = BTreeMap::new();
        let mut open = vec![String::new()];
        while let Some(name) = open.pop() {
            let candidates = match name.as_str() {
                "" => vec!["lib.rs".to_owned()],
                name => vec![format!("{name}.rs"), format!("{name}/mod.rs")],
            };
            let text = candidates.iter().find_map(|file| source(file));
            let module = Module::read(&text.unwrap_or_else(|| panic!("no file of {name}")));
            for child in &module.children {
                open.push(joined(&name, child));
            }
            files.insert(name, module);
        }
        Self { files }
    }

    /// Everything that a file uses of another, where that is defined.
    pub fn imports(&self) -> Vec<Import> {
        let mut all = Vec::new();
        for (from, module) in &self.files {
            for used in &module.paths {
                let Some(path) = self.absolute(from, &used.inline, &used.path) else {
                    continue;
                };
                let (file, item) = self.resolve(&path, 0);
                // A folder's face re-exports what its own files define.
                let face = used.name.as_ref().is_some_and(|(_, public)| *public)
                    && (from.is_empty() || file.starts_with(&format!("{from}/")));
                if file != *from && !face {
                    all.push(Import {
                        from: from.clone(),
                        file,
                        item,
                    });
                }
            }
        }
        all
    }

    /// The path from the crate's root; nothing for paths into other crates.
    fn absolute(&self, from: &str, inline: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut scope: Vec<String> = from
            .split('/')
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect();
        let child = joined(from, &path[0]);
        scope.extend(inline.iter().cloned());
        let mut rest = path;
        match path[0].as_str() {
            "crate" => {
                scope.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    scope.pop();
                    rest = &rest[1..];
                }
            }
            _ if self.files.contains_key(&child) => {}
            _ => return None,
        }
        scope.extend(rest.iter().cloned());
        Some(scope)
    }

    /// The file that an absolute path leads to through re-exports, and the item there.
    fn resolve(&self, path: &[String], depth: usize) -> (String, String) {
        let mut file = String::new();
        let mut rest = path;
        while let Some(part) = rest.first() {
            let next = joined(&file, part);
            if !self.files.contains_key(&next) {
                break;
            }
            file = next;
            rest = &rest[1..];
        }
        let Some(item) = rest.first() else {
            return (file, String::new());
        };
        let named = self.files[&file].paths.iter().find(|used| {
            let name = used.name.as_ref().map(|(name, _)| name);
            used.inline.is_empty() && name == Some(item)
        });
        let origin = named.and_then(|used| self.absolute(&file, &[], &used.path));
        match origin {
            Some(origin) if depth < 10 => self.resolve(&origin, depth + 1),
            _ => (file, item.clone()),
        }
    }
}

fn joined(module: &str, child: &str) -> String {
    if module.is_empty() {
        child.to_owned()
    } else {
        format!("{module}/{child}")
    }
}

impl Module {
    fn read(text: &str) -> Self {
        let tokens = tokens(text);
        let word = |at: usize| tokens.get(at).map_or("", String::as_str);
        let is_name = |at: usize| word(at).starts_with(|c: char| c.is_alphabetic() || c == '_');
        let mut module = Self::default();
        let (mut depth, mut inline): (usize, Vec<(String, usize)>) = (0, Vec::new());
        let mut at = 0;
        while at < tokens.len() {
            let place: Vec<String> = inline.iter().map(|(name, _)| name.clone()).collect();
            match word(at) {
                "#" => {
                    let start = at + 1 + usize::from(word(at + 1) == "!");
                    at = end_of_group(&tokens, start);
                    let attribute = tokens[start..at].concat();
                    if ["[cfg(test)]", "[cfg(doc)]"].contains(&attribute.as_str()) {
                        at = end_of_item(&tokens, at);
                    }
                    continue;
                }
                "mod" if is_name(at + 1) && word(at + 2) == ";" => {
                    module.children.push(word(at + 1).to_owned());
                    at += 3;
                    continue;
                }
                "mod" if is_name(at + 1) && word(at + 2) == "{" => {
                    inline.push((word(at + 1).to_owned(), depth));
                    depth += 1;
                    at += 3;
                    continue;
                }
                "use" => {
                    let end = (at..tokens.len())
                        .find(|&end| word(end) == ";")
                        .unwrap_or(tokens.len());
                    let public = word(at.wrapping_sub(1)) == "pub"
                        || (word(at.wrapping_sub(1)) == ")" && word(at.wrapping_sub(4)) == "pub");
                    for (path, name) in use_tree(&tokens[at + 1..end]) {
                        module.paths.push(Used {
                            inline: place.clone(),
                            path,
                            name: Some((name, public)),
                        });
                    }
                    at = end;
                }
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    if inline.last().is_some_and(|(_, opened)| *opened == depth) {
                        inline.pop();
                    }
                }
                _ if is_name(at) && word(at + 1) == "::" => {
                    let mut path = vec![word(at).to_owned()];
                    while word(at + 1) == "::" && is_name(at + 2) {
                        path.push(word(at + 2).to_owned());
                        at += 2;
                    }
                    if path.len() > 1 {
                        module.paths.push(Used {
                            inline: place,
                            path,
                            name: None,
                        });
                    }
                }
                _ => {}
            }
            at += 1;
        }
        module
    }
}

/// The paths of a `use`, and the names that they give.
fn use_tree(tokens: &[String]) -> Vec<(Vec<String>, String)> {
    let mut prefix = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "::" => {}
            "{" => {
                let inside = &tokens[at + 1..end_of_group(tokens, at) - 1];
                return split_at_commas(inside)
                    .into_iter()
                    .flat_map(use_tree)
                    .map(|(path, name)| {
                        // `{self}` names the module before the brace.
                        if path == ["self"] {
                            let name = if name == "self" {
                                prefix.last().cloned()
                            } else {
                                Some(name)
                            };
                            (prefix.clone(), name.unwrap_or_default())
                        } else {
                            ([&prefix[..], &path[..]].concat(), name)
                        }
                    })
                    .collect();
            }
            "as" => {
                let name = tokens.get(at + 1).cloned().unwrap_or_default();
                return vec![(prefix, name)];
            }
            part => prefix.push(part.to_owned()),
        }
        at += 1;
    }
    match prefix.last().cloned() {
        Some(name) => vec![(prefix, name)],
        None => Vec::new(),
    }
}

fn split_at_commas(tokens: &[String]) -> Vec<&[String]> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "," if depth == 0 => {
                parts.push(&tokens[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[start..]);
    parts
}

/// Behind the bracket that closes the one at `start`.
fn end_of_group(tokens: &[String], start: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Behind the item that starts here: its semicolon, or its block.
fn end_of_item(tokens: &[String], start: usize) -> usize {
    let mut at = start;
    while at < tokens.len() {
        match tokens[at].as_str() {
            ";" => return at + 1,
            "{" => return end_of_group(tokens, at),
            "(" | "[" => at = end_of_group(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// Words, `::` and single marks; comments, strings, characters and lifetimes left out.
fn tokens(text: &str) -> Vec<String> {
    let text: Vec<char> = text.chars().collect();
    let char_at = |at: usize| text.get(at).copied().unwrap_or('\0');
    let starts =
        |at: usize, what: &str| what.chars().enumerate().all(|(i, c)| char_at(at + i) == c);
    let mut all = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let c = text[at];
        if starts(at, "//") {
            while at < text.len() && text[at] != '\n' {
                at += 1;
            }
        } else if starts(at, "/*") {
            let mut depth = 0;
            loop {
                if starts(at, "/*") {
                    depth += 1;
                    at += 2;
                } else if starts(at, "*/") {
                    depth -= 1;
                    at += 2;
                } else {
                    at += 1;
                }
                if depth == 0 || at >= text.len() {
                    break;
                }
            }
        } else if c == '"' {
            at += 1;
            while at < text.len() && text[at] != '"' {
                at += if text[at] == '\\' { 2 } else { 1 };
            }
            at += 1;
        } else if c == '\'' {
            if char_at(at + 1) == '\\' {
                at += 3;
                while at < text.len() && text[at] != '\'' {
                    at += 1;
                }
                at += 1;
            } else if char_at(at + 2) == '\'' {
                at += 3;
            } else {
                // A lifetime or a label: its name is no path.
                at += 1;
                while char_at(at).is_alphanumeric() || char_at(at) == '_' {
                    at += 1;
                }
            }
        } else if c.is_alphanumeric() || c == '_' {
            let start = at;
            while char_at(at).is_alphanumeric() || char_at(at) == '_' {
                at += 1;
            }
            let word: String = text[start..at].iter().collect();
            let hashes = (at..).take_while(|&i| char_at(i) == '#').count();
            if ["r", "br", "cr"].contains(&word.as_str()) && char_at(at + hashes) == '"' {
                let close = format!("\"{}", "#".repeat(hashes));
                at += hashes + 1;
                while at < text.len() && !starts(at, &close) {
                    at += 1;
                }
                at += close.len();
            } else {
                all.push(word);
            }
        } else if starts(at, "::") {
            all.push("::".to_owned());
            at += 2;
        } else {
            if !c.is_whitespace() {
                all.push(c.to_string());
            }
            at += 1;
        }
    }
    all
}

/// A crate of two rooms: what counts as an import of `b`, and what does not.
#[test]
fn imports_are_read_as_the_compiler_reads_them() {
    let imported = |text: &str| {
        let crate_ = Crate::read(&|file| {
            Some(match file {
                "lib.rs" => "mod a;\npub mod b;\nuse b::shared;".to_owned(),
                "a.rs" => "mod inner;\npub use crate::b::Widened;".to_owned(),
                "a/inner.rs" => text.to_owned(),
                "b/mod.rs" => {
                    "mod deep;\npub use deep::{Item, Other as Named};\npub fn f() {}".to_owned()
                }
                "b/deep.rs" => "pub struct Item; pub struct Other;".to_owned(),
                _ => return None,
            })
        });
        let imports = crate_.imports().into_iter();
        imports
            .filter(|import| import.from == "a/inner")
            .map(|import| (import.file + " " + &import.item).trim().to_owned())
            .collect::<Vec<_>>()
            .join(", ")
    };
    for (text, found) in [
        ("use crate::b::f;", "b f"),
        ("use super::super::b::f;", "b f"),
        ("fn g() { crate::b::f(); }", "b f"),
        (
            "fn g() { let x: Vec<crate::b::Item> = super::super::b::h(); }",
            "b/deep Item, b h",
        ),
        ("use crate::b::{self, Item};", "b, b/deep Item"),
        (
            "use crate::{b::{Named as Mine, f}, other};",
            "b/deep Other, b f, other",
        ),
        ("fn g() { use crate::b::*; }", "b *"),
        ("use crate::shared;", "b shared"),
        ("use super::Widened;", "b Widened"),
        (
            "mod own { use super::f; use super::super::super::b::f; }",
            "b f",
        ),
        (
            "const C: char = '\"'; use crate::b::f; const D: &str = \"\";",
            "b f",
        ),
        ("fn g<'a>(x: &'a str) { crate::b::f() }", "b f"),
        // What is none.
        ("// use crate::b::f;", ""),
        ("/* use /* crate */ crate::b::f; */", ""),
        ("/// [`crate::b::f`]\nfn g() {}", ""),
        ("const S: &str = \"crate::b::f \\\" crate::b::f\";", ""),
        ("const S: &str = r#\"\" crate::b::f\"#;", ""),
        (
            "#[cfg(test)]\nmod tests { use crate::b::f; fn g() { crate::b::f() } }",
            "",
        ),
        ("#[cfg(test)]\nuse crate::b::f;", ""),
        (
            "#[cfg(test)]\n#[allow(dead_code)]\nfn g(x: [u8; 3]) { crate::b::f() }",
            "",
        ),
        ("use std::b::f; use other::b;", ""),
        (
            "pub struct Mine; impl Mine { fn g() { Self::h(); Mine::b() } }",
            "",
        ),
    ] {
        assert_eq!(imported(text), found, "{text}");
    }
}
