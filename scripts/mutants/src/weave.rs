//! A source file in which each mutant is a switch.

use crate::find::{Form, Mutant};
use std::ops::Range;

/// Where a mutant stands in the woven text.
#[derive(Clone, Debug)]
pub struct Place {
    pub whole: Range<usize>,
    /// What the mutant does.
    pub changed: Range<usize>,
    /// What stood there before.
    pub original: Range<usize>,
}

/// The text with switches, and the place of each mutant, in the order of `mutants`.
///
/// `mutants` are of one file and in the order of its text; each comes with its number. Only one
/// mutant is ever on, so what a mutant does is written without the switches inside of it, and the
/// text grows with the depth of the nesting and not with two to its power.
pub fn weave(source: &str, mutants: &[(u32, &Mutant)]) -> (String, Vec<Place>) {
    let mut loom = Loom {
        source,
        text: String::with_capacity(source.len() * 2),
        places: vec![None; mutants.len()],
    };
    let all: Vec<(usize, u32, &Mutant)> = mutants
        .iter()
        .enumerate()
        .map(|(index, &(number, mutant))| (index, number, mutant))
        .collect();
    loom.emit(0..source.len(), &all);
    let places = loom
        .places
        .into_iter()
        .map(|place| place.expect("every mutant is written"))
        .collect();
    (loom.text, places)
}

struct Loom<'a> {
    source: &'a str,
    text: String,
    places: Vec<Option<Place>>,
}

impl Loom<'_> {
    fn emit(&mut self, range: Range<usize>, mutants: &[(usize, u32, &Mutant)]) {
        let mut at = range.start;
        let mut next = 0;
        while next < mutants.len() {
            let span = mutants[next].2.span.clone();
            self.text.push_str(&self.source[at..span.start]);
            at = span.start;
            let same = mutants[next..]
                .iter()
                .take_while(|(_, _, mutant)| mutant.span == span)
                .count();
            let group = &mutants[next..next + same];
            next += same;
            let inner = mutants[next..]
                .iter()
                .take_while(|(_, _, mutant)| mutant.span.start < span.end)
                .count();
            let children = &mutants[next..next + inner];
            next += inner;
            self.group(span.clone(), group, children);
            at = at.max(span.end);
        }
        self.text.push_str(&self.source[at..range.end]);
    }

    fn group(
        &mut self,
        span: Range<usize>,
        group: &[(usize, u32, &Mutant)],
        children: &[(usize, u32, &Mutant)],
    ) {
        let start = self.text.len();
        let mut changed = Vec::new();
        let mut write = |text: &mut String, before: &str, body: &str, after: &str| {
            text.push_str(before);
            let from = text.len();
            text.push_str(body);
            changed.push(from..text.len());
            text.push_str(after);
        };
        let original = match &group[0].2.form {
            Form::Return(_) => {
                for (_, number, mutant) in group {
                    if let Form::Return(value) = &mutant.form {
                        let head = format!(" if crate::mutant({number}) {{ return ");
                        write(&mut self.text, &head, value, "; }");
                    }
                }
                self.text.len()..self.text.len()
            }
            Form::NotEntered => {
                let head = format!("{{ if crate::mutant({}) ", group[0].1);
                write(&mut self.text, &head, "{}", " else ");
                let from = self.text.len();
                self.emit(span, children);
                let to = self.text.len();
                self.text.push('}');
                from..to
            }
            Form::Replace(_) => {
                for (index, (_, number, mutant)) in group.iter().enumerate() {
                    if let Form::Replace(new) = &mutant.form {
                        let open = if index == 0 { "(" } else { "" };
                        let head = format!("{open}if crate::mutant({number}) {{ ");
                        write(&mut self.text, &head, new, " } else ");
                    }
                }
                self.text.push_str("{ ");
                let from = self.text.len();
                self.emit(span, children);
                let to = self.text.len();
                self.text.push_str(" })");
                from..to
            }
        };
        let whole = start..self.text.len();
        for ((index, _, _), changed) in group.iter().zip(changed) {
            self.places[*index] = Some(Place {
                whole: whole.clone(),
                changed,
                original: original.clone(),
            });
        }
    }
}

/// What the crate's `lib.rs` begins with: an overflow that the compiler foresees is for the tests
/// to find, and only a build, not a check, would refuse it.
pub const ALLOWED: &str = "#![allow(arithmetic_overflow, unconditional_panic)] ";

/// What the crate's `lib.rs` gains: which mutant is on, and a note of those that are reached.
pub const SWITCH: &str = r#"

/// The mutant that is on, as the environment says.
static MUTANT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(u32::MAX);

/// Whether a mutant is on.
#[inline(always)]
#[doc(hidden)]
pub fn mutant(number: u32) -> bool {
    let on = MUTANT.load(std::sync::atomic::Ordering::Relaxed);
    on == number || (on >= u32::MAX - 1 && mutant_slow(number))
}

#[cold]
#[inline(never)]
fn mutant_slow(number: u32) -> bool {
    use std::sync::atomic::{AtomicBool, Ordering};
    static NOTED: [AtomicBool; MUTANTS] = [const { AtomicBool::new(false) }; MUTANTS];
    static FILE: std::sync::Mutex<Option<std::fs::File>> = std::sync::Mutex::new(None);
    if MUTANT.load(Ordering::Relaxed) == u32::MAX {
        let on = match std::env::var("MUTANT").ok().and_then(|text| text.parse().ok()) {
            Some(on) => on,
            None if std::env::var_os("MUTANTS_REACHED").is_some() => u32::MAX - 1,
            None => u32::MAX - 2,
        };
        MUTANT.store(on, Ordering::Relaxed);
        return mutant(number);
    }
    if !NOTED[number as usize].swap(true, Ordering::Relaxed) {
        use std::io::Write;
        let mut file = FILE.lock().unwrap_or_else(|broken| broken.into_inner());
        if file.is_none() {
            *file = std::env::var_os("MUTANTS_REACHED").and_then(|path| {
                std::fs::OpenOptions::new().append(true).create(true).open(path).ok()
            });
        }
        if let Some(file) = file.as_mut() {
            let _ = file.write_all(format!("{number}\n").as_bytes());
        }
    }
    false
}
"#;

#[cfg(test)]
mod tests {
    use super::weave;
    use crate::find::{Mutant, mutants};
    use std::collections::BTreeSet;

    const SOURCE: &str = "
const SMALL: f64 = 1e-15;
fn width(a: f64, b: f64, n: usize) -> f64 {
    if n == 0 {
        return 0.0;
    }
    (a - b).max(-a) + n as f64 * SMALL
}
";

    fn woven() -> (Vec<Mutant>, String, Vec<super::Place>) {
        let small = BTreeSet::from(["SMALL".to_owned()]);
        let found = mutants("crates/row/src/width.rs", SOURCE, &small).unwrap();
        let numbered: Vec<(u32, &Mutant)> = (1..).zip(&found).collect();
        let (text, places) = weave(SOURCE, &numbered);
        (found, text, places)
    }

    #[test]
    fn what_is_found_in_a_small_function() {
        let (found, _, _) = woven();
        let changes: Vec<&str> = found
            .iter()
            .filter_map(|mutant| mutant.key.split_once(": ").map(|(_, change)| change))
            .collect();
        for change in [
            "returns `1.0` at once",
            "`n == 0` becomes `(n) != 0`",
            "does not enter `{ return 0.0; }`",
            "`(a - b).max(-a)` becomes `(a - b).min(-a)`",
            "`(a - b).max(-a) + n as f64 * SMALL` becomes `(a - b).max(-a)`",
            "`-a` becomes `a`",
            "`SMALL` becomes `0.0`",
        ] {
            assert!(changes.contains(&change), "{change}: {changes:#?}");
        }
        // The constant itself can hold no switch.
        assert!(changes.iter().all(|change| !change.contains("1e-15")));
        let keys: BTreeSet<&str> = found.iter().map(|mutant| mutant.key.as_str()).collect();
        assert_eq!(keys.len(), found.len());
    }

    #[test]
    fn the_text_is_rust_and_every_switch_stands_once() {
        let (found, text, places) = woven();
        assert!(syn::parse_file(&text).is_ok(), "{text}");
        for number in 1..=found.len() {
            let switch = format!("crate::mutant({number})");
            assert_eq!(text.matches(&switch).count(), 1, "{text}");
        }
        for (mutant, place) in found.iter().zip(&places) {
            if let crate::find::Form::Replace(new) = &mutant.form {
                assert_eq!(&text[place.changed.clone()], new);
            }
            assert!(place.whole.start <= place.changed.start);
            assert!(place.changed.end <= place.whole.end);
        }
        assert_eq!(weave(SOURCE, &[]).0, SOURCE);
    }
}
