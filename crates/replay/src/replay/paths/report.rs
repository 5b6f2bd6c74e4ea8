//! The report on paths.

use super::super::advice::{PATHS, is_void, paths_changes};
use super::super::measured::MeasuredTexts;
use super::along::AlongTexts;
use super::by_drafts::{at_drafts, told_twice};
use super::data::{AtDrafts, PATHS_SCHEMA, PathsReport};
use super::limits::Form;
use super::measure::Measurement;
use super::possible::{FittedBounds, by_paths, lower_at};
use crate::replay::paths_definitions;
use specgap_base::setting::for_shell;
use specgap_statistics::advice::Change;

impl Measurement<'_> {
    pub(super) fn report(&self, of: MeasuredTexts) -> PathsReport {
        let clusters = self.texts.clusters;
        let of_texts = self.contexts.starts();
        let starts: usize = of_texts.iter().map(Vec::len).sum();
        let along = self.drafts.iter();
        let along: Vec<AlongTexts> = along
            .map(|&drafts| self.along_texts(&of_texts, drafts))
            .collect();

        // What draft paths and the text bound.
        let (contexts, told) = self.contexts.with_paths(&of_texts, &self.drafts);
        let from_text = self.contexts.texts_as_contexts(&of_texts);
        let logged = contexts.iter().map(|context| context.paths.len()).min();
        let logged = logged.unwrap_or(0);
        let jobs: Vec<(usize, Form)> = (self.drafts)
            .iter()
            .flat_map(|&drafts| {
                let several = (drafts <= logged).then_some(Form::Several);
                let pooled = (logged > 0).then_some(Form::PooledDrafts);
                let forms = [several, pooled, Some(Form::PooledTexts)];
                forms.into_iter().flatten().map(move |form| (drafts, form))
            })
            .collect();
        let of_forms = [&contexts[..], &from_text];
        let lower = |drafts: usize| {
            let at = along.iter().position(|of| of.drafts == drafts)?;
            let by_text = along.get(at)?.lower.mean();
            Some([by_paths(&told, clusters, lower_at(at)), by_text])
        };
        let size = [clusters, self.contexts.length];
        let fitted = FittedBounds::new(&jobs, of_forms, size, lower);
        let by_drafts: Vec<AtDrafts> = (along.iter()).map(|of| at_drafts(of, &fitted)).collect();
        PathsReport {
            schema: PATHS_SCHEMA,
            advice: self.advice(&of, &by_drafts, &along),
            of,
            length: self.contexts.length,
            starts,
            anchors: contexts.len(),
            logged_paths: logged,
            ends_with_text: self.contexts.end_with_text(),
            surprise: self.texts.surprise(),
            by_drafts,
            checks: told_twice(&told, &along, clusters),
            definitions: paths_definitions(),
            left_out: (self
                .left_out(logged, starts)
                .iter()
                .map(|line| for_shell(line)))
            .collect(),
        }
    }

    /// From one path to several, where the text is that of the rows.
    fn advice(&self, of: &MeasuredTexts, all: &[AtDrafts], along: &[AlongTexts]) -> Vec<Change> {
        if is_void(of, &self.texts.surprise()) {
            return Vec::new();
        }
        let [token, block, several] = PATHS;
        let each = all.iter().zip(along).flat_map(|(at, along)| {
            let mean = |rule| Some(along.verifier(rule)?.rounds.mean());
            let more = |than| Some(mean(several)?.minus(&mean(than)?).estimate());
            paths_changes(at, [more(token), more(block)])
        });
        each.collect()
    }
}
