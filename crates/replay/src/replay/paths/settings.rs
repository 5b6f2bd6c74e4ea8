//! What is asked of a log's paths.

/// What is asked of a log's paths.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSettings {
    /// Each K, in 1..=[`Self::MOST_DRAFTS`].
    pub drafts: Vec<usize>,
    /// L; that of the logged paths, or [`Self::LENGTH`], if not given.
    pub length: Option<usize>,
    /// The temperature at which the text was drawn, where the log does not say.
    pub temperature: Option<f64>,
}

impl Default for PathSettings {
    fn default() -> Self {
        Self {
            drafts: (1..=8).collect(),
            length: None,
            temperature: None,
        }
    }
}

impl PathSettings {
    /// L where neither the log nor the settings say.
    pub const LENGTH: usize = 5;
    /// The largest K.
    pub const MOST_DRAFTS: usize = 16;
}
