//! Enums whose values have names.

/// Gives an enum `ALL`, in the order of the names here, and `as_str`, the name of each. Where a text
/// stands behind each name, a method that is named first says it.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Side {
///     Left,
///     Right,
/// }
/// specgap_base::names!(Side: Left "left", Right "right");
/// specgap_base::read_by_name!(Side, |text, all| format!("{text} is none of {all}"));
/// assert_eq!("right".parse(), Ok(Side::Right));
/// assert_eq!("up".parse::<Side>(), Err("up is none of left, right".to_owned()));
/// ```
#[macro_export]
macro_rules! names {
    ($kind:ident: $($value:ident $name:literal),+ $(,)?) => {
        impl $kind {
            /// All of them, in the order of documents.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$value),+];

            /// Returns its name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $name),+
                }
            }
        }
    };
    ($kind:ident, $(#[$about:meta])+ $words:ident: $($value:ident $name:literal $text:literal;)+) => {
        $crate::names!($kind: $($value $name),+);

        impl $kind {
            $(#[$about])+
            #[must_use]
            pub const fn $words(self) -> &'static str {
                match self {
                    $(Self::$value => $text),+
                }
            }
        }
    };
}

/// Makes an enum of values with names and words, which are their documentation too, as [`names!`]
/// does.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])+ pub enum $kind:ident { $($value:ident $name:literal $text:literal;)+ }) => {
        $(#[$about])+
        pub enum $kind {
            $(#[doc = $text] $value),+
        }

        $crate::names! {
            $kind,
            /// Says what it is.
            words: $($value $name $text;)+
        }
    };
}

/// Prints an enum by its names.
#[macro_export]
macro_rules! shown_by_name {
    ($kind:ident) => {
        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

/// Prints an enum by its names, and reads it by them: a refusal is made of the text and of the names.
#[macro_export]
macro_rules! read_by_name {
    ($kind:ident, |$text:ident, $all:ident| $refusal:expr) => {
        $crate::shown_by_name!($kind);

        impl std::str::FromStr for $kind {
            type Err = String;

            fn from_str($text: &str) -> Result<Self, String> {
                let known = Self::ALL.into_iter().find(|one| one.as_str() == $text);
                known.ok_or_else(|| {
                    let $all = Self::ALL.map(Self::as_str).join(", ");
                    $refusal
                })
            }
        }
    };
}

/// A list of pairs of texts: a name, and what it is.
///
/// ```
/// let all = specgap_base::pairs! { "p" "the target"; "q" "the draft"; };
/// assert_eq!(all[1], ("q", "the draft"));
/// ```
#[macro_export]
macro_rules! pairs {
    ($($name:literal $text:literal;)+) => { [$(($name, $text)),+] };
}
