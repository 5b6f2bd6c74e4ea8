//! What several draft paths could give, without what any verifier gets of it: the lines that
//! other reports have of a log with draft paths.

use super::super::ReplayError;
use super::super::read::{Reading, Texts};
use super::bounds::lower_bound_of_text;
use super::contexts::{Contexts, ToldByPaths, logged_paths};
use super::limits::{Context, CrossFitted, Form, cross_fitted};
use super::means::{ByPrompt, Mean};
use super::settings::PathSettings;
use specgap_base::side_by_side;
use specgap_log::log::{Log, Rollouts};
use specgap_measure::{DraftPaths, PossibleWithPaths};
use specgap_statistics::Estimate;

/// L, as asked for or as the logged paths have it.
pub(super) fn length_of(
    asked: Option<usize>,
    logs: &[Log],
    drawn: &[Option<Rollouts>],
) -> Result<usize, ReplayError> {
    let logged = logs.iter().zip(drawn).filter_map(|(log, paths)| {
        let paths = paths.as_ref()?;
        Some((log, paths.max_tokens()))
    });
    let shortest = logged.min_by_key(|&(_, tokens)| tokens);
    let deepest = logs.iter().map(|log| (log, log.depths()));
    let deepest = deepest
        .filter(|&(_, depths)| depths > 1)
        .min_by_key(|&(_, depths)| depths);
    if let (Some(length), Some((log, depths))) = (asked, deepest)
        && length > depths
    {
        return Err(ReplayError::of_log(
            log,
            format!(
                "it has rows of the draft at {depths} depths, and ⟨length⟩ asks for {length}; ask \
                 for at most {depths}"
            ),
        ));
    }
    let most = deepest.map_or(usize::MAX, |(_, depths)| depths);
    let found = match (asked, shortest) {
        (Some(0), _) => Err(ReplayError::Settings(
            "a path of 0 tokens: its length is at least 1".to_owned(),
        )),
        (Some(length), Some((log, tokens))) if length > tokens => Err(ReplayError::of_log(
            log,
            format!(
                "its draft paths have {tokens} tokens, and ⟨length⟩ asks for {length}; ask for at \
                 most {tokens}, or capture longer ones with ⟨path-length {length}⟩"
            ),
        )),
        (Some(length), _) => Ok(length),
        (None, Some((_, tokens))) => Ok(tokens),
        (None, None) => Ok(PathSettings::LENGTH),
    };
    found.map(|length: usize| length.min(most))
}

/// An upper bound of some number of paths.
pub(super) struct Fitted {
    pub(super) drafts: usize,
    pub(super) form: Form,
    pub(super) limits: Vec<Vec<f64>>,
    bound: Mean,
}

/// Upper bounds of some numbers of paths of so many tokens.
pub(super) struct FittedBounds {
    /// The numbers of paths rising, of each the form that says most first.
    pub(super) all: Vec<Fitted>,
    length: usize,
    clusters: usize,
}

impl FittedBounds {
    /// The bounds of some numbers of paths in some forms, from contexts with draft paths and from
    /// those of the text; without those that cannot be fitted. `lower` has the lower bound of a
    /// number of paths, by draft paths and by the text.
    pub(super) fn new(
        jobs: &[(usize, Form)],
        [with_paths, from_text]: [&[Context]; 2],
        [clusters, length]: [usize; 2],
        lower: impl Fn(usize) -> Option<[Mean; 2]>,
    ) -> Self {
        let fitted: Vec<Option<CrossFitted>> = side_by_side::each(jobs, |&(drafts, form)| {
            let contexts = match form {
                Form::PooledTexts => from_text,
                _ => with_paths,
            };
            cross_fitted(contexts, clusters, form, drafts, length)
        });
        let all = jobs
            .iter()
            .zip(fitted)
            .filter_map(|(&(drafts, form), fitted)| {
                let (fitted, [by_paths, by_text]) = (fitted?, lower(drafts)?);
                let own = fitted.by_prompt.mean();
                // What draft paths tell of its distance to the lower bound, above the lower bound by
                // the text.
                let bound = match form {
                    Form::PooledTexts => own,
                    _ => own.minus(&by_paths).plus(&by_text),
                };
                let limits = fitted.limits;
                Some(Fitted {
                    drafts,
                    form,
                    limits,
                    bound,
                })
            });
        Self {
            all: all.collect(),
            length,
            clusters,
        }
    }

    /// The bounds of a number of paths.
    pub(super) fn of(&self, drafts: usize) -> impl Iterator<Item = &Fitted> + Clone {
        self.all.iter().filter(move |one| one.drafts == drafts)
    }

    /// A bound, less what `than` subtracts: the least of its own, of those of more paths, each of
    /// the same form or, of a first one, the first, and of all tokens of a path.
    ///
    /// The interval ends above where the bound's own does, or at all tokens, and begins with the
    /// lowest: so it holds the least of the true numbers, whichever estimate is the least.
    pub(super) fn least(&self, one: &Fitted, than: impl Fn(&Mean) -> Mean) -> Estimate {
        let is_first = |one: &Fitted| {
            let first = self.of(one.drafts).next();
            first.is_some_and(|first| first.form == one.form)
        };
        let own = is_first(one);
        let more = (self.all.iter()).filter(|more| more.drafts > one.drafts);
        let more = more.filter(|more| more.form == one.form || own && is_first(more));
        let all = Mean::sure(self.length as f64, self.clusters);
        let bounds = std::iter::once(&all).chain(more.map(|more| &more.bound));
        let start = than(&one.bound).estimate();
        let mut least = bounds.fold(start, |least, bound| {
            let bound = than(bound).estimate();
            let low = least.ci95[0].min(bound.ci95[0]);
            Estimate {
                mean: least.mean.min(bound.mean),
                ci95: [low, least.ci95[1]],
                ..least
            }
        });
        least.ci95[1] = least.ci95[1].min(self.length as f64);
        least
    }
}

/// The lower bound of a number of paths, by its place among these, at a context with draft paths.
pub(super) fn lower_at(at: usize) -> impl Fn(&ToldByPaths) -> f64 {
    move |told| told.lower.get(at).copied().unwrap_or(0.0)
}

/// A mean over contexts with draft paths.
pub(super) fn by_paths(
    told: &[ToldByPaths],
    clusters: usize,
    of: impl Fn(&ToldByPaths) -> f64,
) -> Mean {
    let mut sums = ByPrompt::new(clusters);
    for one in told {
        sums.add(one.cluster, of(one));
    }
    sums.mean()
}

/// Upper and lower bound of K = 1..8 draft paths: the same numbers as
/// [`measure_paths`](super::measure_paths) has, to the digit, without reading any row but for
/// the texts. `None` of logs without several draft paths a context, or whose paths lack what
/// the target gives them.
///
/// # Errors
/// Paths of another temperature than the text; files that cannot be read.
///
/// # Complexity
/// O(N L), and some hundred passes over the logged paths for each K.
pub fn possible_with_paths(logs: &[Log], texts: &Texts) -> Result<Option<DraftPaths>, ReplayError> {
    let drawn = (logs.iter())
        .map(logged_paths)
        .collect::<Result<Vec<_>, _>>()?;
    if drawn.iter().all(Option::is_none) {
        return Ok(None);
    }
    let length = length_of(None, logs, &drawn)?;
    let contexts = Contexts::new(logs, drawn, texts, length)?;
    let (of_texts, clusters) = (contexts.starts(), texts.clusters);
    let drafts = PathSettings::default().drafts;
    let (with_paths, told) = contexts.with_paths(&of_texts, &drafts);
    let logged = with_paths.iter().map(|context| context.paths.len()).min();
    let Some(logged) = logged.filter(|&paths| paths > 1) else {
        return Ok(None);
    };
    let form = |drafts: usize| match drafts <= logged {
        true => Form::Several,
        false => Form::PooledDrafts,
    };
    let jobs: Vec<(usize, Form)> = drafts.iter().map(|&k| (k, form(k))).collect();
    let by_text = |drafts: usize| {
        let mut sum = ByPrompt::new(clusters);
        for (text, starts) in texts.texts.iter().zip(&of_texts) {
            for start in starts {
                sum.add(text.cluster, lower_bound_of_text(&start.ratios(), drafts));
            }
        }
        sum.mean()
    };
    let by_text: Vec<Mean> = drafts.iter().map(|&drafts| by_text(drafts)).collect();
    let lower = |k: usize| {
        let at = drafts.iter().position(|&drafts| drafts == k)?;
        Some([
            by_paths(&told, clusters, lower_at(at)),
            by_text.get(at)?.clone(),
        ])
    };
    let fitted = FittedBounds::new(&jobs, [&with_paths, &[]], [clusters, length], lower);
    let by_drafts = drafts.iter().zip(&by_text).map(|(&drafts, by_text)| {
        let own = fitted.of(drafts).next();
        PossibleWithPaths {
            drafts,
            upper_bound: own.map(|own| fitted.least(own, Mean::clone)),
            form: own.map(|own| own.form.name().to_owned()),
            lower_bound: by_text.estimate(),
        }
    });
    Ok(Some(DraftPaths {
        temperature: texts.temperature,
        length,
        starts: of_texts.iter().map(Vec::len).sum(),
        anchors: with_paths.len(),
        logged_paths: logged,
        by_drafts: by_drafts.collect(),
    }))
}

/// The same of logs whose texts were not read yet. `None` without reading any row where no log
/// has several draft paths a context.
///
/// # Errors
/// As [`possible_with_paths`] and [`Texts::read`].
///
/// # Complexity
/// O(N V) for reading.
pub fn read_possible_with_paths(
    logs: &[Log],
    progress: &(dyn Fn(usize) + Sync),
) -> Result<Option<DraftPaths>, ReplayError> {
    let several = |log: &Log| {
        let record = log.metadata().rollouts.as_ref();
        record.is_none_or(|record| record.paths > 1 && record.target)
    };
    for log in logs.iter().filter(|log| several(log)) {
        if logged_paths(log)?.is_some() {
            let texts = Texts::read_with(logs, None, &Reading::default(), progress)?;
            return possible_with_paths(logs, &texts);
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of four prompts with these numbers.
    fn mean(numbers: [f64; 4]) -> Mean {
        let mut sums = ByPrompt::new(4);
        for (prompt, number) in numbers.into_iter().enumerate() {
            sums.add(prompt, number);
        }
        sums.mean()
    }

    #[test]
    fn a_bound_is_at_most_that_of_more_paths_and_all_tokens_of_a_path() {
        use Form::{PooledDrafts, PooledTexts, Several};
        let of = |(drafts, form, numbers): (usize, Form, [f64; 4])| Fitted {
            drafts,
            form,
            limits: Vec::new(),
            bound: mean(numbers),
        };
        let all = [
            (1, Several, [1.0, 1.2, 1.4, 1.2]),
            (1, PooledTexts, [2.2, 1.8, 2.0, 2.0]),
            (2, Several, [1.9, 1.5, 1.7, 1.7]),
            (2, PooledTexts, [1.9; 4]),
            (3, PooledDrafts, [1.1, 1.7, 2.0, 1.6]),
            (3, PooledTexts, [3.3, 2.9, 3.1, 3.1]),
        ];
        let bounds = FittedBounds {
            all: all.into_iter().map(of).collect(),
            length: 3,
            clusters: 4,
        };
        let own: Vec<Estimate> = (bounds.all.iter())
            .map(|one| one.bound.estimate())
            .collect();
        // The first of three paths is of another form, and is the least of what bounds two.
        for (at, taken, mean) in [
            (0, 0, 1.2),
            (1, 3, 1.9),
            (2, 4, 1.6),
            (3, 3, 1.9),
            (4, 4, 1.6),
        ] {
            let least = bounds.least(&bounds.all[at], Mean::clone);
            assert!((least.mean - mean).abs() < 1e-12, "{at}: {least:?}");
            assert_eq!(least.ci95[1], own[at].ci95[1].min(3.0));
            assert!(least.ci95[0] <= own[at].ci95[0].min(own[taken].ci95[0]));
        }
        let last = bounds.least(&bounds.all[5], Mean::clone);
        assert_eq!((last.mean, last.ci95), (3.0, [own[5].ci95[0], 3.0]));
        // What is accepted goes off each of them, and L less it bounds the rest.
        let accepted = mean([0.9, 1.1, 1.3, 1.1]);
        let below = |at: usize| bounds.least(&bounds.all[at], |bound| bound.minus(&accepted));
        assert!((below(0).mean - 0.1).abs() < 1e-12 && below(0).ci95[1] - below(0).ci95[0] < 1e-9);
        assert!((below(2).mean - 0.5).abs() < 1e-12 && (below(5).mean - 1.9).abs() < 1e-12);
    }
}
