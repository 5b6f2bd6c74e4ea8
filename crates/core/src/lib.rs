//! Problems, draft laws, verification rules, optima and certificates: the library alone.
//!
//! It knows no log, no report, no program, and needs neither ONNX nor a plotting library.

pub mod certify;
pub mod coupling;
pub mod decoder;
#[doc(hidden)]
pub mod entry_name;
pub mod lp;
pub mod optimum;
pub mod problem;
pub mod rounds;
pub mod rule;
pub mod scheme;
pub mod stop;
pub mod tree;
pub mod verifier;
