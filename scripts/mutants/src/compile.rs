//! The copy of the source tree, and what the compiler says of it.

use crate::Fallible;
use crate::find::Mutant;
use crate::weave::{ALLOWED, Place, SWITCH, weave};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file's name and text.
pub type Sources = BTreeMap<String, String>;

/// Below this folder of the work folder the copy lies.
const COPY: &str = "tree";

pub struct Tree {
    work: PathBuf,
    copy: PathBuf,
    features: Option<String>,
}

/// A program of tests.
pub struct Program {
    pub name: String,
    pub path: PathBuf,
}

/// An error of the compiler: a file and some of its bytes.
type Complaint = (String, std::ops::Range<usize>);

fn write_if_changed(path: &Path, content: &[u8]) -> std::io::Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == content) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, content)
}

/// Where sources are: the program, and the members.
const FOLDERS: [&str; 2] = ["src", "crates"];

impl Tree {
    /// Copies what git knows of `root`, and what it does not ignore, but for sources that are
    /// woven later.
    pub fn new(root: &Path, work: &Path, features: Option<String>) -> Fallible<Self> {
        std::fs::create_dir_all(work)?;
        let work = work.canonicalize()?;
        let copy = work.join(COPY);
        let list = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()?;
        for name in String::from_utf8(list.stdout)?.split_terminator('\0') {
            let source = FOLDERS.iter().any(|folder| name.starts_with(&format!("{folder}/")))
                && name.ends_with(".rs");
            let from = root.join(name);
            if !source && from.is_file() {
                write_if_changed(&copy.join(name), &std::fs::read(&from)?)?;
            }
        }
        Ok(Self {
            work,
            copy,
            features,
        })
    }

    pub fn folder(&self) -> &Path {
        &self.copy
    }

    pub fn work(&self) -> &Path {
        &self.work
    }

    /// All sources as they are in the repository.
    pub fn sources(&self) -> Fallible<Sources> {
        let mut sources = Sources::new();
        let mut folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "rs") {
                    let text = std::fs::read_to_string(&path)?;
                    sources.insert(path.to_string_lossy().into_owned(), text);
                }
            }
        }
        Ok(sources)
    }

    /// Writes all sources with the mutants as switches numbered from 1; returns their places.
    fn write(&self, sources: &Sources, mutants: &[&Mutant]) -> Fallible<Vec<Place>> {
        let mut places = vec![None; mutants.len()];
        for (file, source) in sources {
            let of_file: Vec<(u32, &Mutant)> = (1..)
                .zip(mutants)
                .filter(|(_, mutant)| mutant.file == *file)
                .map(|(number, &mutant)| (number, mutant))
                .collect();
            let (mut text, of_text) = weave(source, &of_file);
            for ((number, _), place) in of_file.iter().zip(of_text) {
                places[*number as usize - 1] = Some(place);
            }
            // No room has this file: nothing in it is changed, and its places may move.
            if file.ends_with("src/lib.rs") {
                text.insert_str(0, ALLOWED);
                text.push_str(&SWITCH.replace("MUTANTS]", &format!("{}]", mutants.len() + 1)));
            }
            write_if_changed(&self.copy.join(file), text.as_bytes())?;
        }
        Ok(places.into_iter().flatten().collect())
    }

    fn cargo(&self, arguments: &[&str]) -> Fallible<(bool, Vec<Value>)> {
        let cargo = std::env::var("MUTANTS_CARGO").unwrap_or_else(|_| "cargo".into());
        let mut command = Command::new(cargo);
        command
            .args(arguments)
            .args(["--locked", "--message-format=json"])
            .current_dir(&self.copy)
            .env_remove("CARGO_MANIFEST_DIR")
            .stderr(Stdio::inherit());
        if std::env::var_os("CARGO_TARGET_DIR").is_none() {
            command.env("CARGO_TARGET_DIR", self.work.join("build"));
        }
        if let Some(features) = &self.features {
            command.args(["--features", features]);
        }
        let output = command.output()?;
        let messages = String::from_utf8_lossy(&output.stdout)
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        Ok((output.status.success(), messages))
    }

    /// Those that compile. What does not is found from the compiler's errors and taken out, until
    /// there are none; it is remembered by its key.
    pub fn viable<'a>(
        &self,
        sources: &Sources,
        mut left: Vec<&'a Mutant>,
    ) -> Fallible<Vec<&'a Mutant>> {
        let path = self.work.join("does-not-compile.txt");
        let mut known = std::fs::read_to_string(&path).unwrap_or_default();
        let keys: BTreeSet<String> = known.lines().map(str::to_owned).collect();
        left.retain(|mutant| !keys.contains(&mutant.key));
        // Those that compiled once do so again, or the build will say that they do not.
        let seen = self.work.join("compiles.txt");
        let mut compiles = std::fs::read_to_string(&seen).unwrap_or_default();
        let keys: BTreeSet<String> = compiles.lines().map(str::to_owned).collect();
        if left.iter().all(|mutant| keys.contains(&mutant.key)) {
            return Ok(left);
        }
        loop {
            let places = self.write(sources, &left)?;
            let (success, messages) = self.cargo(&["check", "--lib"])?;
            if success {
                break;
            }
            let complaints = complaints(&messages);
            let dropped = culprits(&left, &places, &complaints);
            if dropped.is_empty() {
                return Err(format!("no mutant is to blame for {complaints:?}").into());
            }
            println!("{} do not compile", dropped.len());
            for &index in &dropped {
                known.push_str(&left[index].key);
                known.push('\n');
            }
            let mut index = 0;
            left.retain(|_| {
                index += 1;
                !dropped.contains(&(index - 1))
            });
            std::fs::write(&path, &known)?;
        }
        for mutant in left.iter().filter(|mutant| !keys.contains(&mutant.key)) {
            compiles.push_str(&mutant.key);
            compiles.push('\n');
        }
        std::fs::write(seen, compiles)?;
        Ok(left)
    }

    /// Builds the tests with these mutants as switches.
    pub fn build(&self, sources: &Sources, mutants: &[&Mutant]) -> Fallible<Vec<Program>> {
        self.write(sources, mutants)?;
        let (success, messages) = self.cargo(&[
            "test", "--no-run", "--lib", "--bins", "--test", "library", "--test", "program",
        ])?;
        if !success {
            return Err("the build failed".into());
        }
        let mut programs: Vec<Program> = Vec::new();
        for message in &messages {
            let name = message["target"]["name"].as_str().unwrap_or_default();
            let kind = message["target"]["kind"][0].as_str().unwrap_or_default();
            let tested = message["profile"]["test"].as_bool().unwrap_or(false);
            if let Some(path) = message["executable"].as_str()
                && tested
                && kind != "bin"
            {
                programs.push(Program {
                    name: if kind == "lib" { "unit" } else { name }.to_owned(),
                    path: path.into(),
                });
            }
        }
        Ok(programs)
    }
}

fn complaints(messages: &[Value]) -> Vec<Complaint> {
    let mut found = Vec::new();
    for message in messages {
        let message = &message["message"];
        if message["level"] != "error" {
            continue;
        }
        for span in message["spans"].as_array().into_iter().flatten() {
            if span["is_primary"] == true
                && let (Some(file), Some(start), Some(end)) = (
                    span["file_name"].as_str(),
                    span["byte_start"].as_u64(),
                    span["byte_end"].as_u64(),
                )
            {
                found.push((file.to_owned(), start as usize..end as usize));
            }
        }
    }
    found
}

/// Which of the mutants the errors point at.
fn culprits(mutants: &[&Mutant], places: &[Place], complaints: &[Complaint]) -> BTreeSet<usize> {
    let mut dropped = BTreeSet::new();
    for (file, span) in complaints {
        let of_file = || {
            (0..mutants.len())
                .filter(|&index| mutants[index].file == *file)
                .map(|index| (index, &places[index]))
        };
        let inside = |outer: &std::ops::Range<usize>| {
            outer.start <= span.start && span.end <= outer.end && !outer.is_empty()
        };
        // What a mutant changes is wrong; or the other branch, which then is of another type.
        let changed: Vec<usize> = of_file()
            .filter(|(_, place)| inside(&place.changed) || place.original == *span)
            .map(|(index, _)| index)
            .collect();
        if !changed.is_empty() {
            dropped.extend(changed);
            continue;
        }
        let innermost = of_file()
            .filter(|(_, place)| inside(&place.whole))
            .min_by_key(|(_, place)| place.whole.len());
        if let Some((_, place)) = innermost {
            let whole = place.whole.clone();
            dropped.extend(of_file().filter(|(_, p)| p.whole == whole).map(|(i, _)| i));
            continue;
        }
        // Outside of all: those within the span, else the nearest one.
        let within: Vec<usize> = of_file()
            .filter(|(_, place)| span.start <= place.whole.start && place.whole.end <= span.end)
            .map(|(index, _)| index)
            .collect();
        if within.is_empty() {
            let nearest = of_file().min_by_key(|(_, place)| place.whole.start.abs_diff(span.start));
            dropped.extend(nearest.map(|(index, _)| index));
        } else {
            dropped.extend(within);
        }
    }
    dropped
}
