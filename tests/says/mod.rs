//! What a text has to say.

pub trait Says {
    /// Fails unless these words are in it.
    fn says(&self, words: &str);
}

impl Says for str {
    #[track_caller]
    fn says(&self, words: &str) {
        assert!(self.contains(words), "{words:?} is not in {self}");
    }
}

/// One of some lines does.
impl Says for [String] {
    #[track_caller]
    fn says(&self, words: &str) {
        let said = self.iter().any(|line| line.contains(words));
        assert!(said, "{words:?} is in none of {self:?}");
    }
}
