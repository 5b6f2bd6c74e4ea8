//! What a report on paths leaves out, and why.

use super::measure::Measurement;

impl Measurement<'_> {
    /// Returns what is left out where contexts have so many paths, and texts have room at so many
    /// starts.
    pub(super) fn left_out(&self, logged: usize, starts: usize) -> Vec<String> {
        let mut left_out = Vec::new();
        let most = self.drafts.last().copied().unwrap_or(0);
        let cuts = self.texts.served;
        if !cuts.keep_all() {
            left_out.push(format!(
                "upper bounds without bias: draft paths are drawn from the draft's whole row, and here \
                 it is cut ({}), so that none are read; capture text that is not cut, with ⟨paths \
                 {most}⟩ ⟨path-length {}⟩",
                cuts.in_words(&[self.texts.temperature]),
                self.contexts.length
            ));
        } else if logged == 0 {
            left_out.push(format!(
                "upper bounds without bias: they need several draft paths a context, with what the \
                 target gives them; capture with ⟨paths {most}⟩ ⟨path-length {}⟩",
                self.contexts.length
            ));
        } else if logged < most {
            left_out.push(format!(
                "upper bounds of more than {logged} paths without bias: contexts have {logged} \
                 draft paths; capture with ⟨paths {most}⟩"
            ));
        }
        if self.texts.clusters < 2 {
            left_out.push(
                "every upper bound: limits are fitted on some prompts and reported on others, and \
                 there is one prompt only"
                    .to_owned(),
            );
        }
        if starts == 0 {
            left_out.push(format!(
                "everything: no text has room for {} tokens behind a prefix; ask for a smaller \
                 ⟨length⟩, or capture longer texts",
                self.contexts.length
            ));
        }
        left_out.push(
            "traversal, and trees whose children are drawn without replacement (sequential \
             children, EAGLE's, SpecHub's pairs): they need the rows at every node that is drafted, \
             off the text too, and draft trees that were drawn so; specgap decode --bound has them on \
             the trees of a live decoder, and specgap tree has trees along the text"
                .to_owned(),
        );
        left_out
    }
}
