//! From texts and logged draft paths to a report.

use super::super::ReplayError;
use super::super::advice::{PATHS, is_void, paths_changes};
use super::super::measured::{MeasuredTexts, measured, with_files};
use super::super::moments;
use super::super::read::{Text, Texts};
use super::super::rows::Whose;
use super::bounds::lower_bound_of_text;
use super::by_agreement::{Asked, Step, reached};
use super::coded::{CODED, Coded, interval_of};
use super::contexts::{Contexts, Start, ToldByPaths, logged_paths};
use super::data::{
    AtDrafts, BesideIid, PATHS_SCHEMA, PathVerifier, PathsReport, ToldTwice, UpperBound,
};
use super::limits::{CrossFitted, Form};
use super::means::{ByPrompt, Mean};
use super::possible::{above_the_lower, by_paths, fitted_bounds, length_of, lower_at};
use super::settings::PathSettings;
use crate::replay::paths_definitions;
use specgap_base::setting::for_shell;
use specgap_base::side_by_side;
use specgap_core::rounds::ChainRule;
use specgap_core::rule::RuleName;
use specgap_log::log::Log;
use specgap_number::distribution::Rows;
use specgap_row::row::Workspace;
use specgap_statistics::Estimate;
use specgap_statistics::advice::Change;
use std::collections::BTreeSet;

/// Verifiers of K i.i.d. paths that go level by level.
const BY_LEVEL: [RuleName; 5] = [
    RuleName::SPECTR_RRS,
    RuleName::SPECTR_K_SEQ,
    RuleName::SPECTR_OPTIMAL,
    RuleName::SELECT_BLOCK,
    RuleName::SELECT_GREEDY_BLOCK,
];

/// Verifiers of K paths, in the order of reports: of one path, level by level, by codes.
fn rules(coded: bool) -> Vec<RuleName> {
    let of_one = ChainRule::all().map(ChainRule::rule);
    let by_codes = CODED.iter().filter(|_| coded).map(|(rule, _)| *rule);
    of_one.chain(BY_LEVEL).chain(by_codes).collect()
}

/// Reads the texts of some logs, and the draft paths that they have, and says what K paths
/// could give and what verifiers get of it. `command` goes into the report, and `progress` is
/// told of positions as they are read.
///
/// # Errors
/// As [`Texts::read`]; also K or L out of range, and draft paths that were drawn at another
/// temperature than the text.
///
/// # Complexity
/// O(N V) for reading, and some milliseconds a position for selections from up to 8 drafts;
/// memory grows by 8 bytes a position for each of 3 K (K + 1)/2 numbers. Rows are read twice, as
/// the second time the places of paths by codes are known: O(V) and 256 bytes a position for
/// each K and each round in which more than one of them may be there.
pub fn measure_paths(
    logs: &[Log],
    settings: &PathSettings,
    command: &str,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<PathsReport, ReplayError> {
    let most = most_drafts(settings)?;
    let drawn = logs
        .iter()
        .map(logged_paths)
        .collect::<Result<Vec<_>, _>>()?;
    let length = length_of(settings.length, logs, &drawn)?;
    let asked = Asked::new(most).map_err(|why| ReplayError::Settings(why.to_owned()))?;
    let question = |scan: &mut Workspace, rows: Rows<'_>, token: usize, _: Whose| {
        ask(&asked, scan, rows, token)
    };
    let (texts, files) = with_files(logs, || {
        Texts::read_asking(logs, settings.temperature, progress, Some(&question), false)
    })?;
    let contexts = Contexts::new(logs, drawn, &texts, length)?;
    let drafts: BTreeSet<usize> = settings.drafts.iter().copied().collect();
    let several: Vec<usize> = drafts
        .iter()
        .copied()
        .filter(|&drafts| drafts > 1)
        .collect();
    let interval = |text: &Text, start: usize, depth: usize| {
        let answers = text.asked_at(start, depth, width(&asked));
        match answers.get(asked.width()..) {
            Some(&[from, to]) => [from, to],
            _ => [0.0; 2],
        }
    };
    let coded = Coded::read(logs, &texts, &interval, (&several, length))?;
    Ok(Measurement {
        rules: rules(coded.is_some()),
        texts: &texts,
        asked: &asked,
        coded,
        drafts,
        contexts,
    }
    .report(measured(&texts, logs, files, command)))
}

/// What is asked of a position: tables, and the interval of its token.
fn ask(
    asked: &Asked,
    scan: &mut Workspace,
    rows: Rows<'_>,
    token: usize,
) -> Result<Vec<f64>, String> {
    let mut answers = asked.tables(scan, rows, token)?;
    answers.extend(interval_of(rows.draft, token));
    Ok(answers)
}

/// Numbers of a position: tables, and the interval of its token.
fn width(asked: &Asked) -> usize {
    asked.width() + 2
}

fn most_drafts(settings: &PathSettings) -> Result<usize, ReplayError> {
    let most = settings.drafts.iter().copied().max().unwrap_or(0);
    let fits = |&drafts: &usize| (1..=PathSettings::MOST_DRAFTS).contains(&drafts);
    if settings.drafts.iter().all(fits) && most > 0 {
        return Ok(most);
    }
    Err(ReplayError::Settings(format!(
        "numbers of paths {:?}: give at least one, each in 1..={}",
        settings.drafts,
        PathSettings::MOST_DRAFTS
    )))
}

struct Measurement<'a> {
    /// What is measured: [`rules`].
    rules: Vec<RuleName>,
    texts: &'a Texts,
    asked: &'a Asked,
    /// None where rows list some tokens only.
    coded: Option<Coded>,
    /// K.
    drafts: BTreeSet<usize>,
    contexts: Contexts<'a>,
}

/// What one text says of every verifier, for one K.
struct Along {
    /// E[tau] of each, and the lower bound, block by block.
    blocks: Vec<Vec<f64>>,
    /// Rounds of the whole text.
    calls: Vec<f64>,
}

/// Rounds that a text of `all` tokens takes in expectation, `reached(start)` being
/// P(tau >= i given the text) of a round that begins there, i = 1, 2, ... A round with `left`
/// tokens to go drafts `left` - 1 at most, and its last token is the target's own.
pub(super) fn calls<'r>(all: usize, reached: impl Fn(usize) -> &'r [f64]) -> f64 {
    let mut begins = vec![0.0; all + 1];
    let mut calls = 0.0;
    begins[0] = 1.0;
    for start in 0..all {
        let here = begins[start];
        calls += here;
        let (mut before, mut behind) = (1.0, start + 1);
        for &reached in reached(start).iter().take(all - start - 1) {
            begins[behind] += here * (before - reached);
            before = reached;
            behind += 1;
        }
        begins[behind] += here * before;
    }
    calls
}

impl Measurement<'_> {
    fn report(&self, of: MeasuredTexts) -> PathsReport {
        let clusters = self.texts.clusters;
        let of_texts = self.contexts.starts();
        let starts: usize = of_texts.iter().map(Vec::len).sum();

        // Verifiers and the lower bound, along the text.
        let drafts: Vec<usize> = self.drafts.iter().copied().collect();
        let columns = self.rules.len() + 1;
        let mut by_prompt = Vec::with_capacity(columns * drafts.len());
        let mut rounds = Vec::with_capacity(drafts.len());
        for &drafts in &drafts {
            let texts = &self.texts.texts;
            let along: Vec<Along> =
                side_by_side::each_number(texts.len().min(of_texts.len()), |text| {
                    self.along(&texts[text], &of_texts[text], drafts)
                });
            let mut sums = vec![ByPrompt::new(clusters); columns];
            let mut calls = vec![ByPrompt::new(clusters); self.rules.len()];
            for (text, along) in self.texts.texts.iter().zip(&along) {
                for values in &along.blocks {
                    for (sum, &value) in sums.iter_mut().zip(values) {
                        sum.add(text.cluster, value);
                    }
                }
                let tokens = text.places.len() as f64;
                for (sum, &calls) in calls.iter_mut().zip(&along.calls) {
                    sum.add_ratio(text.cluster, tokens, calls);
                }
            }
            by_prompt.append(&mut sums);
            rounds.push(calls);
        }

        // What draft paths and the text bound.
        let (contexts, told) = self.contexts.with_paths(&of_texts, &drafts);
        let from_text = self.contexts.texts_as_contexts(&of_texts);
        let logged = contexts.iter().map(|context| context.paths.len()).min();
        let logged = logged.unwrap_or(0);
        let jobs: Vec<(usize, Form)> = drafts
            .iter()
            .flat_map(|&drafts| {
                let several = (drafts <= logged).then_some(Form::Several);
                let pooled = (logged > 0).then_some(Form::PooledDrafts);
                let forms = [several, pooled, Some(Form::PooledTexts)];
                forms.into_iter().flatten().map(move |form| (drafts, form))
            })
            .collect();
        let of_forms = [&contexts[..], &from_text];
        let fitted = fitted_bounds(jobs, of_forms, clusters, self.contexts.length);
        let by_drafts: Vec<AtDrafts> = drafts
            .iter()
            .zip(by_prompt.chunks(columns))
            .enumerate()
            .map(|(at, (&drafts, sums))| {
                let lower = by_paths(&told, clusters, lower_at(at));
                let rounds = rounds.get(at).map_or(&[][..], Vec::as_slice);
                at_drafts(drafts, (&self.rules, sums, rounds), &lower, &fitted)
            })
            .collect();
        let checks = self.checks(&told, &drafts, &by_prompt);
        PathsReport {
            schema: PATHS_SCHEMA,
            advice: self.advice(&of, &by_drafts, &rounds),
            of,
            length: self.contexts.length,
            starts,
            anchors: contexts.len(),
            logged_paths: logged,
            ends_with_text: self.contexts.end_with_text(),
            surprise: self.texts.surprise(),
            by_drafts,
            checks,
            definitions: paths_definitions(),
            left_out: (self
                .left_out(logged, starts)
                .iter()
                .map(|line| for_shell(line)))
            .collect(),
        }
    }

    /// From one path to several, where the text is that of the rows.
    fn advice(
        &self,
        of: &MeasuredTexts,
        all: &[AtDrafts],
        rounds: &[Vec<ByPrompt>],
    ) -> Vec<Change> {
        if is_void(of, &self.texts.surprise()) {
            return Vec::new();
        }
        let [token, block, several] = PATHS;
        let each = all.iter().zip(rounds).flat_map(|(at, rounds)| {
            let mean = |name: &str| {
                let column = self.rules.iter().position(|one| one.as_str() == name)?;
                Some(rounds.get(column)?.mean())
            };
            let more = |than: &str| Some(mean(several)?.minus(&mean(than)?).estimate());
            paths_changes(at, [more(token), more(block)])
        });
        each.collect()
    }

    /// P(tau >= i) of every verifier given a stretch of text, i = 1, 2, ..
    fn survivals(&self, text: &Text, start: &Start<'_>, drafts: usize) -> Vec<Vec<f64>> {
        let single = |verifier| {
            let ratios = start.places.iter().map(|place| &place.ratio);
            moments::reached(verifier, ratios)
        };
        let of = |step: Step| {
            let range = self.asked.range(step);
            let rows = 0..start.places.len();
            let rows = rows.map(|depth| text.asked_at(start.begin, depth, width(self.asked)));
            let tables = rows.map(|row| row.get(range.clone()).unwrap_or(&[]));
            reached(tables, drafts, step == Step::Selected)
        };
        let selected = of(Step::Selected);
        let [by_block, by_greedy_block] = selected.selected;
        let stretch = (start.begin, start.places.len());
        let coded = self
            .coded
            .iter()
            .flat_map(|coded| coded.survivals(text, stretch, drafts));
        let by_level: [_; BY_LEVEL.len()] = [
            of(Step::Rrs).by_token,
            of(Step::KSeq).by_token,
            selected.by_token,
            by_block,
            by_greedy_block,
        ];
        let of_one = ChainRule::all().map(single);
        of_one.chain(by_level).chain(coded).collect()
    }

    /// E[tau] of every verifier at every block of a text with the lower bound, and the rounds
    /// that the whole text takes, for one K.
    fn along(&self, text: &Text, starts: &[Start<'_>], drafts: usize) -> Along {
        let all = text.places.len();
        let length = self.contexts.length;
        let stretches =
            (0..all).filter_map(|begin| Start::new(text, begin, length.min(all - begin)));
        let survivals: Vec<Vec<Vec<f64>>> = stretches
            .map(|stretch| self.survivals(text, &stretch, drafts))
            .collect();
        let blocks = starts.iter().filter_map(|start| {
            // A block is as long as the stretch that begins where it does.
            let survivals = survivals.get(start.begin)?;
            let accepted = survivals.iter().map(|reached| reached.iter().sum());
            let lower = lower_bound_of_text(&start.ratios(), drafts);
            Some(accepted.chain(std::iter::once(lower)).collect())
        });
        let calls = |verifier: usize| {
            let reached = |start: usize| -> &[f64] {
                let here = survivals.get(start).and_then(|all| all.get(verifier));
                here.map_or(&[], Vec::as_slice)
            };
            calls(all, reached)
        };
        Along {
            blocks: blocks.collect(),
            calls: (0..self.rules.len()).map(calls).collect(),
        }
    }

    /// Single-draft verifiers, and the lower bound of the largest K, by text and by paths.
    fn checks(
        &self,
        told: &[ToldByPaths],
        drafts: &[usize],
        by_prompt: &[ByPrompt],
    ) -> Vec<ToldTwice> {
        if told.is_empty() {
            return Vec::new();
        }
        let rules = &self.rules;
        let columns = rules.len() + 1;
        let twice = |what: &str,
                     (drafts, at): (usize, usize),
                     column: usize,
                     of: &dyn Fn(&ToldByPaths) -> f64| {
            let from_paths = by_paths(told, self.texts.clusters, of);
            let from_text = by_prompt.get(at * columns + column)?.mean();
            Some(ToldTwice {
                what: what.to_owned(),
                drafts,
                from_text: from_text.estimate(),
                from_paths: from_paths.estimate(),
                difference: from_paths.minus(&from_text).estimate(),
            })
        };
        let single = rules.iter().enumerate().filter(|(_, rule)| rule.is_chain());
        let single = single.filter_map(|(column, rule)| {
            twice(rule.as_str(), (1, 0), column, &|one| {
                one.single.get(column).copied().unwrap_or(0.0)
            })
        });
        let lower = drafts.iter().zip(0..).filter_map(|(&drafts, at)| {
            twice("lower bound", (drafts, at), rules.len(), &lower_at(at))
        });
        single.chain(lower).collect()
    }

    fn left_out(&self, logged: usize, starts: usize) -> Vec<String> {
        let mut left_out = Vec::new();
        let most = self.drafts.last().copied().unwrap_or(0);
        if logged == 0 {
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
        if self.coded.is_none() {
            left_out.push(format!(
                "{} and {}: paths by codes need the interval of every token, and rows here list \
                 some tokens only; log whole rows",
                CODED[0].0, CODED[1].0
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

/// Upper and lower bound and verifiers of K paths. `lower` is the lower bound by draft paths.
///
/// Draft paths and text are two samples. What the paths tell of is how far the upper bound lies
/// above the lower one, which varies little; the lower bound itself follows from the text, from
/// which the verifiers follow too. The sum has the same mean as the paths' own upper bound.
fn at_drafts(
    drafts: usize,
    (rules, sums, rounds): (&[RuleName], &[ByPrompt], &[ByPrompt]),
    lower: &Mean,
    fitted: &[((usize, Form), CrossFitted)],
) -> AtDrafts {
    let of_text = sums.last().map_or_else(|| lower.clone(), ByPrompt::mean);
    let own = fitted.iter().filter(|((k, _), _)| *k == drafts);
    let bounds: Vec<(Form, &CrossFitted, Mean)> = own
        .map(|((_, form), fitted)| {
            (
                *form,
                fitted,
                above_the_lower(*form, fitted, lower, &of_text),
            )
        })
        .collect();
    // The verifier of i.i.d. paths that one of coded paths stands beside.
    let beside = |rule: RuleName| {
        let (_, beside) = CODED.iter().find(|(coded, _)| *coded == rule)?;
        rules.iter().position(|one| one == beside)
    };
    let below = |sum: &ByPrompt| -> Option<Estimate> {
        let (_, _, first) = bounds.first()?;
        Some(first.minus(&sum.mean()).estimate())
    };
    AtDrafts {
        drafts,
        upper_bounds: bounds
            .iter()
            .map(|(form, fitted, bound)| UpperBound {
                form: form.name().to_owned(),
                expected_accepted_length: bound.estimate(),
                limits: fitted.limits.clone(),
            })
            .collect(),
        lower_bound: of_text.estimate(),
        verifiers: rules
            .iter()
            .zip(sums)
            .enumerate()
            .map(|(index, (&rule, sum))| PathVerifier {
                verifier: rule.to_string(),
                uses: if rule.is_chain() { 1 } else { drafts },
                expected_accepted_length: sum.mean().estimate(),
                // The bound is one of i.i.d. paths.
                below_upper_bound: below(sum).filter(|_| beside(rule).is_none()),
                beside: beside(rule).and_then(|of| {
                    let more = |all: &[ByPrompt], sum: &ByPrompt| {
                        Some(sum.mean().minus(&all.get(of)?.mean()).estimate())
                    };
                    Some(BesideIid {
                        verifier: rules.get(of)?.to_string(),
                        expected_accepted_length: more(sums, sum)?,
                        tokens_per_call: more(rounds, rounds.get(index)?)?,
                    })
                }),
                tokens_per_call: rounds
                    .get(index)
                    .filter(|_| !rule.entry().changes_target)
                    .map(|rounds| rounds.mean().estimate()),
            })
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Theorem 3 of docs/theory/several-rounds.md on a shipped log: given the text, rules of several
    /// paths that accept each token at least as often as token verification make no more calls.
    #[test]
    fn several_paths_make_no_more_calls_text_by_text() {
        let folder = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../models/logs/smollm2-demo"
        );
        let logs = [Log::open(folder.as_ref()).unwrap()];
        let asked = Asked::new(4).unwrap();
        let question = |scan: &mut Workspace, rows: Rows<'_>, token: usize, _: Whose| {
            ask(&asked, scan, rows, token)
        };
        let texts = Texts::read_asking(&logs, None, &|_| {}, Some(&question), false).unwrap();
        let rules = rules(false);
        let of = |name: &str| rules.iter().position(|one| one.as_str() == name).unwrap();
        let (mut seen, mut fewer) = (0, 0);
        for length in [1, 2, 4] {
            let measurement = Measurement {
                rules: rules.clone(),
                texts: &texts,
                asked: &asked,
                coded: None,
                drafts: (1..=4).collect(),
                contexts: Contexts::new(&logs, vec![None], &texts, length).unwrap(),
            };
            let starts = measurement.contexts.starts();
            for (text, starts) in texts.texts.iter().zip(&starts) {
                for drafts in 1..=4 {
                    let calls = measurement.along(text, starts, drafts).calls;
                    let token = calls[of("token")];
                    for name in ["block", "spectr-rrs", "spectr-k-seq"] {
                        let own = calls[of(name)];
                        assert!(
                            own <= token + 1e-9,
                            "{name}, {drafts}, {length}: {own} {token}"
                        );
                        seen += 1;
                        fewer += usize::from(own < token - 1e-9);
                    }
                }
            }
        }
        assert!(
            seen == 20 * 3 * 4 * 3 && fewer > seen / 2,
            "{fewer} of {seen}"
        );
    }
}
