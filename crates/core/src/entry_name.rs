//! Names of the entries of a table.
//!
//! A table lists entries, and entries name one another. So the name, a handle to an entry,
//! lies below the entries, and the table above them:
//!
//! ```text
//! entry_name!(SchemeName of Law);                                               // below
//! entry_table! { pub const LAWS: [Law] as SchemeName; "draft scheme", UnknownScheme; .. }  // above
//! ```

/// An entry of a table: what it is called.
pub trait Named {
    /// The name that is written.
    fn name(&self) -> &'static str;

    /// Other names, which are read.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }
}

/// Returns what is probably meant by a text that is no name, of names with what each stands for:
/// the nearest by single letters that are changed, left out, added or swapped with the next, if
/// these are a third of the text at most, or else the first that begins as the text does and has
/// its letters in their order, as `wr` is short for `with-replacement`. Capitals do not count, and
/// `_` and blanks are `-`.
///
/// # Example
/// ```
/// use specgap_core::entry_name::nearest;
/// let names = ["token", "block"].map(|name| (name, name));
/// assert_eq!(nearest("tkoen", names), Some("token"));
/// assert_eq!(nearest("another", names), None);
/// ```
pub fn nearest<'a, T>(
    text: &str,
    names: impl IntoIterator<Item = (&'a str, T), IntoIter: Clone>,
) -> Option<T> {
    let plain = |text: &str| text.trim().to_lowercase().replace(['_', ' '], "-");
    let text = plain(text);
    let first = text.chars().next()?;
    let mut names = names.into_iter();
    let changes = |name: &str| strsim::osa_distance(&text, &plain(name));
    let ranked = (names.clone()).map(|(name, meant)| (changes(name), meant));
    let (least, meant) = ranked.min_by_key(|(changes, _)| *changes)?;
    if 3 * least <= text.chars().count().max(3) {
        return Some(meant);
    }
    let is_short_for = |name: &str| {
        let name = plain(name);
        let mut letters = name.chars();
        name.starts_with(first) && text.chars().all(|one| letters.any(|other| other == one))
    };
    names.find_map(|(name, meant)| is_short_for(name).then_some(meant))
}

/// Makes a struct of one `&'static` entry the name of that entry, by which the rest of the
/// crate refers to it. The entry is [`Named`]; handles compare, sort, hash and print by its
/// name. `by rule` names the entry by its rule.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_name {
    ($handle:ident of $entry:ident by rule) => {
        impl $crate::entry_name::Named for $entry {
            fn name(&self) -> &'static str {
                self.rule.as_str()
            }

            fn aliases(&self) -> &'static [&'static str] {
                self.rule.entry().aliases
            }
        }

        $crate::entry_name!($handle of $entry);
    };
    ($handle:ident of $entry:ident) => {
        impl $handle {
            /// The entry.
            pub fn entry(self) -> &'static $entry {
                self.0
            }

            /// The name, as it is written in problem files and reports.
            pub fn as_str(self) -> &'static str {
                $crate::entry_name::Named::name(self.0)
            }
        }

        impl PartialEq for $handle {
            fn eq(&self, other: &Self) -> bool {
                std::ptr::eq(self.0, other.0) || self.as_str() == other.as_str()
            }
        }

        impl Eq for $handle {}

        impl std::hash::Hash for $handle {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.as_str().hash(state);
            }
        }

        impl PartialOrd for $handle {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $handle {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                self.as_str().cmp(other.as_str())
            }
        }

        impl std::fmt::Debug for $handle {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({})", stringify!($handle), self.as_str())
            }
        }

        impl std::fmt::Display for $handle {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

/// A table, a constant slice of references to entries, with a constant name for each; and names that
/// are listed and read by it. A text that is no name is the error, which lists those that are, and
/// says which may be meant.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_table {
    (
        $(#[$about:meta])*
        pub const $table:ident: [$entry:ident] as $handle:ident; $what:literal, $unknown:ident;
        $($(#[$doc:meta])* $name:ident = $place:path;)*
    ) => {
        $(#[$about])*
        pub const $table: &[&$entry] = &[$(&$place),*];

        impl $handle {
            $($(#[$doc])* pub const $name: Self = Self(&$place);)*

            /// All of them, in the order of the table.
            pub const ALL: [Self; $table.len()] = {
                let mut all = [Self($table[0]); $table.len()];
                let mut index = 0;
                while index < all.len() {
                    all[index] = Self($table[index]);
                    index += 1;
                }
                all
            };

            /// All names, for messages.
            pub fn list() -> String {
                Self::ALL.map(Self::as_str).join(", ")
            }

            /// The one that is probably meant by a text that is no name, also by one that its
            /// aliases have; `None` if none is near.
            pub fn nearest(text: &str) -> Option<Self> {
                let named = Self::ALL.into_iter().flat_map(|one| {
                    let aliases = $crate::entry_name::Named::aliases(one.entry());
                    let all = aliases.iter().map(move |&alias| (alias, one));
                    std::iter::once((one.as_str(), one)).chain(all)
                });
                $crate::entry_name::nearest(text, named)
            }
        }

        impl std::str::FromStr for $handle {
            type Err = $unknown;
            fn from_str(text: &str) -> Result<Self, $unknown> {
                Self::ALL
                    .into_iter()
                    .find(|name| {
                        let aliases = $crate::entry_name::Named::aliases(name.entry());
                        name.as_str() == text || aliases.contains(&text)
                    })
                    .ok_or_else(|| $unknown(text.to_owned()))
            }
        }

        #[doc = concat!("A name that is not in [`", stringify!($table), "`].")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $unknown(pub String);

        impl std::fmt::Display for $unknown {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let known = $handle::list();
                write!(
                    f,
                    "\"{}\" is not a {}; choose one of {known}",
                    self.0, $what
                )?;
                match $handle::nearest(&self.0) {
                    Some(meant) => write!(f, "; did you mean {meant}?"),
                    None => Ok(()),
                }
            }
        }

        impl std::error::Error for $unknown {}
    };
}

pub(crate) use {entry_name, entry_table};
