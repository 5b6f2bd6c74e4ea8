//! Whether the draft's rows are about the positions that they stand at.
//!
//! A drafter whose map of ids is wrong, that reads another position's hidden states, or whose rows
//! were logged elsewhere, is one that knows nothing of its position: the row of another position
//! does as well. Positions are taken by eight that lie as far apart as the log is long, and each
//! draft's row is held against the target's rows of all eight. The difference is paired, by prompt.

use super::GapError;
use serde::{Deserialize, Serialize};
use specgap_base::side_by_side;
use specgap_base::sorted::Map;
use specgap_log::log::{Log, Row};
use specgap_sampling::{Cuts, Lists, Logged, Model, Room, Serving};
use specgap_statistics::{Clustered, Estimate};

/// Positions that are held against one another, and how many such groups there are at most.
const GROUP: usize = 8;
const GROUPS: usize = 64;
/// Positions below which nothing is said.
const ENOUGH: usize = 100;
/// The shares that a draft's row has to gain by standing at its own place: of what is left to gain, and
/// of what is left inside the draft's vocabulary.
const LEAST: [f64; 2] = [0.05, 0.2];
/// Where there is less to gain nothing is said: rows of all positions are alike.
const LITTLE: f64 = 0.1;

/// The overlap of the draft's rows with the target's rows of their own positions, and of others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DraftFit {
    /// Positions that were looked at, spread over the log.
    pub positions: usize,
    /// Mean of the sum of min(p, q), of lists over their likeliest tokens.
    pub own: f64,
    /// The same with the target's rows of other positions.
    pub other: f64,
    /// Mean of the target's mass on tokens that the draft can draw, as far as it is known; else 1.
    pub coverage: f64,
    /// The first less the second, paired, with its interval by prompt.
    pub gain: Estimate,
    /// What the draft's row of the position before, and of the one behind, has more in common with
    /// the target's than the draft's own row, where there are such positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<[Estimate; 2]>,
}

impl DraftFit {
    /// Sums (overlap, overlap with other positions, coverage, positions) by prompt; `None` of too
    /// few positions.
    #[must_use]
    pub fn new(prompts: &[[f64; 4]]) -> Option<Self> {
        let sum = |at: usize| prompts.iter().map(|one| one[at]).sum::<f64>();
        let [own, other, coverage, count] = [0, 1, 2, 3].map(sum);
        let gains = (prompts.iter()).map(|&[own, other, _, count]| (own - other, count));
        (count >= ENOUGH as f64).then(|| Self {
            positions: count as usize,
            own: own / count,
            other: other / count,
            coverage: coverage / count,
            gain: Clustered::new(gains).estimate(),
            beside: None,
        })
    }

    /// Measures rows of a log at a temperature; `None` of too few, of rows that cannot be read,
    /// which a measurement refuses, and of lists of nothing but the text's own tokens.
    #[must_use]
    pub fn of(log: &Log, temperature: f64) -> Option<Self> {
        let lists = Lists::new(log).ok()?;
        let reader = Reader {
            log,
            temperature,
            tops: lists.as_ref().and_then(Lists::tops),
            lists,
        };
        if reader.tops.is_some_and(|tops| tops.contains(&0)) {
            return None;
        }
        let apart = log.positions() / GROUP;
        let groups = apart.min(GROUPS);
        let starts: Vec<usize> = (0..groups).map(|group| group * apart / groups).collect();
        let found = side_by_side::each_or_stop(&starts, |&start| reader.group(start, apart));
        let found: Vec<Found> = found.ok()?.into_iter().flatten().collect();
        reader.sums(&found)
    }

    /// Returns whether the rows are no better at their own positions than at others, as far as is
    /// worth a draft: their interval lies below a twentieth of what there is to gain, and below a
    /// fifth of what a vocabulary of the draft's own leaves of it.
    #[must_use]
    pub fn knows_nothing(&self) -> bool {
        let left = [1.0 - self.other, self.coverage - self.other];
        let mut limits = left
            .into_iter()
            .zip(LEAST)
            .map(|(left, share)| share * left);
        left[0] > LITTLE && limits.all(|limit| self.gain.ci95[1] < limit)
    }

    /// Returns whether they are another drafter's, or stand elsewhere: then nothing is advised.
    #[must_use]
    pub fn is_strange(&self) -> bool {
        self.knows_nothing() || self.misplaced().is_some()
    }

    /// Returns where the rows that belong to the positions stand, if that is one position off: -1
    /// where the row before a position fits it better than its own, 1 where the one behind does.
    #[must_use]
    pub fn misplaced(&self) -> Option<i64> {
        let better = |one: &Estimate| {
            let [low, high] = one.ci95;
            // Twice as sure as an interval.
            high > low && one.mean > high - low && one.mean > LEAST[0] * (1.0 - self.own)
        };
        let [before, behind] = self.beside.as_ref()?;
        [(before, -1), (behind, 1)]
            .into_iter()
            .find_map(|(one, off)| better(one).then_some(off))
    }
}

/// A row's shares, by place, or of the likeliest tokens of a list, by id.
enum Shares {
    Full(Vec<f64>),
    Listed(Vec<(u32, f64)>),
}

impl Shares {
    /// Sum of min(p, q) over what both have.
    fn common(&self, other: &Self) -> f64 {
        match (self, other) {
            (Self::Full(p), Self::Full(q)) => specgap_row::common(p, q),
            (Self::Listed(p), Self::Listed(q)) => {
                let at = |id: &u32| q.binary_search_by_key(id, |one| one.0).ok();
                let of = |(id, p): &(u32, f64)| Some(p.min(q.get(at(id)?)?.1));
                p.iter().filter_map(of).sum()
            }
            _ => 0.0,
        }
    }
}

impl Shares {
    /// The mass on tokens that a draft can draw.
    fn covered_by(&self, draft: &Self) -> f64 {
        match (self, draft) {
            (Self::Full(p), Self::Full(q)) => specgap_row::covered(p, q),
            // What a list leaves out may be drawn.
            _ => 1.0,
        }
    }
}

/// A position: its prompt, and what the draft's row there, those of eight positions and those beside it
/// have in common with the target's.
struct Found {
    prompt: i64,
    own: f64,
    other: f64,
    coverage: f64,
    beside: [Option<f64>; 2],
}

struct Reader<'a> {
    log: &'a Log,
    temperature: f64,
    lists: Option<Lists>,
    tops: Option<[usize; 2]>,
}

impl Reader<'_> {
    /// The positions from `start` on that are so far apart.
    fn group(&self, start: usize, apart: usize) -> Result<Vec<Found>, GapError> {
        let (mut row, mut room) = (Row::default(), Room::default());
        let mut both = Vec::with_capacity(GROUP);
        for number in (0..GROUP).map(|place| start + place * apart) {
            self.log.read(number, &mut row)?;
            self.log.mask_target(number, &mut row)?;
            if row.lacks_draft {
                continue;
            }
            let target = self.shares(Model::Target, &row, &mut room)?;
            let draft = self.shares(Model::Draft, &row, &mut room)?;
            let label = (row.prompt_id, row.position);
            let mut beside = [None; 2];
            for (off, of) in [-1, 1].into_iter().zip(&mut beside) {
                let place = number.checked_add_signed(off);
                let Some(place) = place.filter(|&place| place < self.log.positions()) else {
                    continue;
                };
                self.log.read(place, &mut row)?;
                let wanted = label.1.map(|position| position + off as i64);
                if wanted.is_some()
                    && (row.prompt_id, row.position) == (label.0, wanted)
                    && !row.lacks_draft
                {
                    *of = Some(target.common(&self.shares(Model::Draft, &row, &mut room)?));
                }
            }
            // Without prompts positions count by themselves.
            let prompt = label.0.unwrap_or(number as i64);
            both.push((prompt, target, draft, beside));
        }
        let others = (both.len().max(2) - 1) as f64;
        let found = both.iter().map(|(prompt, target, draft, beside)| {
            let own = target.common(draft);
            let all: f64 = both
                .iter()
                .map(|(_, target, ..)| target.common(draft))
                .sum();
            Found {
                prompt: *prompt,
                own,
                other: (all - own) / others,
                coverage: target.covered_by(draft),
                beside: *beside,
            }
        });
        Ok(found.filter(|_| both.len() > 1).collect())
    }

    fn shares(&self, model: Model, row: &Row, room: &mut Room) -> Result<Shares, GapError> {
        let logged = Logged {
            lists: self.lists.as_ref(),
            applied: self.log.metadata().applied(),
            row,
        };
        let serving = Serving {
            model,
            temperature: self.temperature,
            cuts: Cuts::default(),
            own: false,
        };
        let mut shares = Vec::new();
        let unlisted = logged
            .fill(serving, room, &mut shares)
            .map_err(GapError::Settings)?;
        if row.token_ids.is_empty() {
            return Ok(Shares::Full(shares));
        }
        let kept = 1.0 - unlisted.middle();
        let ids = row.token_ids.iter().copied();
        let mut listed: Vec<(u32, f64)> = (ids.zip(shares).filter(|(_, share)| !share.is_nan()))
            .map(|(id, share)| (id, kept * share))
            .collect();
        listed.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        // What is listed whatever stands beside it: other tokens are there for the other model's sake.
        let half = listed.len().div_ceil(2);
        listed.truncate(self.tops.map_or(half, |tops| tops[model as usize]));
        listed.sort_by_key(|one| one.0);
        Ok(Shares::Listed(listed))
    }

    fn sums(&self, found: &[Found]) -> Option<DraftFit> {
        let mut prompts: Map<i64, [f64; 4]> = Map::new();
        for one in found {
            let sums = prompts.at(one.prompt);
            let terms = [one.own, one.other, one.coverage, 1.0];
            sums.iter_mut()
                .zip(terms)
                .for_each(|(sum, term)| *sum += term);
        }
        let sums: Vec<[f64; 4]> = prompts.values().copied().collect();
        let beside = [0, 1].map(|side| {
            let mut more: Map<i64, (f64, f64)> = Map::new();
            for (one, here) in found
                .iter()
                .filter_map(|one| Some((one, one.beside[side]?)))
            {
                let (sum, count) = more.at(one.prompt);
                *sum += here - one.own;
                *count += 1.0;
            }
            let sums: Vec<(f64, f64)> = more.values().copied().collect();
            (!sums.is_empty()).then(|| Clustered::new(sums.iter().copied()).estimate())
        });
        let fit = DraftFit::new(&sums)?;
        Some(DraftFit {
            beside: beside[0]
                .zip(beside[1])
                .map(|(before, behind)| [before, behind]),
            ..fit
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::own_tests::tensor;
    use super::super::{Part, Settings, summarise};
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    use specgap_log::log::{Dtype, Metadata};

    /// Sums of four prompts of thirty positions, with the means that are given.
    fn sums(own: f64, other: f64) -> Vec<[f64; 4]> {
        let off = [-0.3, 0.0, 0.0, 0.3];
        off.map(|off| [30.0 * own + off, 30.0 * other, 30.0, 30.0])
            .to_vec()
    }

    #[test]
    fn a_twentieth_of_what_there_is_to_gain_decides() {
        // ± .013 of three degrees of freedom, and .043 that is worth a draft.
        let fit = DraftFit::new(&sums(0.16, 0.14)).unwrap();
        assert!(
            (fit.gain.mean - 0.02).abs() < 1e-12 && fit.positions == 120,
            "{fit:?}"
        );
        assert!(
            (fit.gain.ci95[1] - 0.02 - 3.1824 * 0.004_082).abs() < 1e-4,
            "{fit:?}"
        );
        assert!(fit.knows_nothing());
        assert!(!DraftFit::new(&sums(0.2, 0.14)).unwrap().knows_nothing());
        // Not told apart from a little.
        assert!(!DraftFit::new(&sums(0.175, 0.14)).unwrap().knows_nothing());
        assert!(DraftFit::new(&sums(0.5, 0.1)[..3]).is_none());
        // The same gain is much of what a small vocabulary can have; and of rows that are alike
        // everywhere nothing is known.
        let covering = |coverage: f64| {
            sums(0.16, 0.14)
                .into_iter()
                .map(|one| [one[0], one[1], 30.0 * coverage, 30.0])
                .collect::<Vec<_>>()
        };
        assert!(DraftFit::new(&covering(0.37)).unwrap().knows_nothing());
        assert!(!DraftFit::new(&covering(0.25)).unwrap().knows_nothing());
        assert!(!DraftFit::new(&sums(0.95, 0.95)).unwrap().knows_nothing());
    }

    const V: usize = 32;
    const LENGTH: usize = 40;

    /// What stands where the draft's row of a position belongs.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Stands {
        Own,
        /// By a wrong map of ids.
        OtherIds,
        /// That of the position before, and behind.
        Before,
        Behind,
        /// One row everywhere.
        One,
        /// That of another text.
        Elsewhere,
    }

    /// Eight texts of forty tokens, drawn from the target; rows in full or lists of eight.
    fn log(seed: u64, stands: Stands, lists: bool, swapped: bool) -> Log {
        let mut rng = SmallRng::seed_from_u64(seed);
        let sharp = rng.random_range(1.5..3.0);
        let noise = if swapped {
            2.0
        } else {
            rng.random_range(0.3..1.0)
        };
        let count = 8 * LENGTH;
        let mut row = |scale: f64| -> Vec<f64> {
            (0..V)
                .map(|_| {
                    scale
                        * (rng.random::<f64>() + rng.random::<f64>() + rng.random::<f64>() - 1.5)
                        * 2.0
                })
                .collect()
        };
        // What every text has in common.
        let common = row(1.0);
        let targets: Vec<Vec<f64>> = (0..count)
            .map(|_| row(sharp).iter().zip(&common).map(|(x, y)| x + y).collect())
            .collect();
        let drafts: Vec<Vec<f64>> = (targets.iter())
            .map(|target| target.iter().zip(row(noise)).map(|(x, y)| x + y).collect())
            .collect();
        let at = |n: usize| match stands {
            Stands::Own | Stands::OtherIds => n,
            Stands::Before => n.saturating_sub(1),
            Stands::Behind => (n + 1).min(count - 1),
            Stands::One => 0,
            Stands::Elsewhere => (n + 3 * LENGTH + 7) % count,
        };
        let softmax = |logits: &[f64]| -> Vec<f64> {
            let total: f64 = logits.iter().map(|x| x.exp()).sum();
            logits.iter().map(|x| x.exp() / total).collect()
        };
        let mut rng = SmallRng::seed_from_u64(seed + 1000);
        let (mut rows, mut ids, mut tokens) = (
            [Vec::new(), Vec::new()],
            [Vec::new(), Vec::new()],
            Vec::new(),
        );
        for n in 0..count {
            let target = softmax(&targets[n]);
            let mut draft = softmax(&drafts[at(n)]);
            if stands == Stands::OtherIds {
                draft.reverse();
            }
            let mut left: f64 = rng.random();
            let token = target
                .iter()
                .position(|p| {
                    left -= p;
                    left < 0.0
                })
                .unwrap_or(V - 1);
            tokens.push(token as i64);
            let pair = if swapped {
                [draft, target]
            } else {
                [target, draft]
            };
            for (model, row) in pair.into_iter().enumerate() {
                let mut order: Vec<usize> = (0..V).collect();
                order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
                if lists {
                    order.truncate(8);
                } else {
                    order.sort_unstable();
                }
                rows[model].extend(order.iter().map(|&id| row[id].ln()));
                ids[model].extend(order.iter().map(|&id| id as i32));
            }
        }
        let width = rows[0].len() / count;
        let floats = |row: &[f64]| row.iter().flat_map(|x| x.to_le_bytes()).collect();
        let wholes = |of: &mut dyn Iterator<Item = i64>| of.flat_map(i64::to_le_bytes).collect();
        let mut tensors = vec![
            tensor(
                "token",
                Dtype::I64,
                &[count],
                wholes(&mut tokens.into_iter()),
            ),
            tensor(
                "prompt_id",
                Dtype::I64,
                &[count],
                wholes(&mut (0..count as i64).map(|n| n / LENGTH as i64)),
            ),
            tensor(
                "position",
                Dtype::I64,
                &[count],
                wholes(&mut (0..count as i64).map(|n| n % LENGTH as i64)),
            ),
        ];
        for (model, name) in ["target", "draft"].iter().enumerate() {
            tensors.push(tensor(
                &format!("{name}_logprobs"),
                Dtype::F64,
                &[count, width],
                floats(&rows[model]),
            ));
            if lists {
                let bytes = ids[model].iter().flat_map(|id| id.to_le_bytes()).collect();
                tensors.push(tensor(
                    &format!("{name}_token_ids"),
                    Dtype::I32,
                    &[count, width],
                    bytes,
                ));
            }
        }
        let metadata = serde_json::json!({"vocabulary": V, "top": if lists { 8 } else { V }});
        let metadata: Metadata = match lists {
            true => serde_json::from_value(metadata).unwrap(),
            false => Metadata::default(),
        };
        Log::held("made".as_ref(), metadata, tensors, None).unwrap()
    }

    /// Of six pairs of models: rows of the draft's own positions are never strange, others always.
    #[test]
    fn rows_of_other_positions_are_found_in_full_and_in_lists() {
        for seed in 0..6 {
            for lists in [false, true] {
                let fit = |stands| DraftFit::of(&log(seed, stands, lists, false), 1.0).unwrap();
                let own = fit(Stands::Own);
                assert!(
                    !own.is_strange() && own.gain.ci95[0] > 0.1,
                    "{seed} {lists}: {own:?}"
                );
                assert_eq!(own.positions, 320);
                for stands in [Stands::OtherIds, Stands::One, Stands::Elsewhere] {
                    let fit = fit(stands);
                    assert!(fit.knows_nothing(), "{seed} {lists} {stands:?}: {fit:?}");
                }
                // The row of the position before stands here: one's own stands behind.
                assert_eq!(fit(Stands::Before).misplaced(), Some(1), "{seed} {lists}");
                assert_eq!(fit(Stands::Behind).misplaced(), Some(-1), "{seed} {lists}");
            }
        }
    }

    /// A text is checked at the one temperature that is asked for, where the log says nothing.
    #[test]
    fn the_text_is_checked_whatever_tells_its_temperature() {
        let surprise = |swapped: bool, temperatures: &[f64]| {
            let settings = Settings::new(temperatures, &[2], 0).unwrap();
            let logs = [log(5, Stands::Own, false, swapped)];
            let summary = summarise(&logs, &settings, Part::WHOLE, None, &|_| ()).unwrap();
            summary.report("").logs[0].surprise
        };
        let honest = surprise(false, &[1.0]).unwrap();
        assert!(
            honest.not_drawn().is_none() && honest.z.unwrap().abs() < 4.0,
            "{honest:?}"
        );
        let swapped = surprise(true, &[1.0]).unwrap();
        assert!(swapped.not_drawn().is_some(), "{swapped:?}");
        assert!(surprise(false, &[3.0]).unwrap().not_drawn().is_some());
        // Two are no statement about the text, and 0 draws none.
        assert_eq!(surprise(true, &[0.7, 1.0]), None);
        assert_eq!(surprise(true, &[0.0]), None);
    }
}
