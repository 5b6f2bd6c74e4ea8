//! Paths that one code each writes: how a decoder draws them, and what a rule asks of them.
//! The rule itself is the replay's ([`CodedRow`]).

use super::rounds::Chance;
use super::sampling::Law;
use specgap_core::rule::{InTurn, RuleName};
use specgap_replay::replay::{CodedPieces, CodedRow, coded_levels};

/// The paths that are at a prefix.
///
/// No code is drawn: given its prefix a code is uniform on its piece of the prefix, so that each
/// token is a draw from what the piece has of every token. Digits of a code would run out.
#[derive(Clone, Debug)]
pub(super) struct There {
    pieces: CodedPieces<f64>,
    /// Their numbers, rising.
    paths: Vec<usize>,
}

impl There {
    /// All of them, where a round starts.
    pub(super) fn all(paths: usize) -> Self {
        Self {
            pieces: CodedPieces::of_paths(paths),
            paths: (0..paths).collect(),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.paths.len()
    }

    /// Draws the next token of each: the tokens, with the paths that are there behind them.
    ///
    /// Time O(V + K log V) and O(V) a path.
    pub(super) fn next(&self, q: &Law, chance: &mut dyn Chance) -> Vec<(u32, Self)> {
        let row: Vec<f64> = q.probabilities().collect();
        let row = CodedRow::new(&row, &row);
        let laws = row.laws(&self.pieces);
        let mut drawn: Vec<(u32, Self)> = Vec::new();
        for &path in &self.paths {
            let law = laws.get(self.pieces.of_path(path));
            let token = law.and_then(|law| Some(law.first + chance.of(&law.masses)?));
            // A piece has nothing only where rounding made it.
            let token = token.unwrap_or_else(|| chance.token(q));
            match drawn.iter_mut().find(|(known, _)| *known as usize == token) {
                Some((_, there)) => there.paths.push(path),
                None => {
                    let there = Self {
                        pieces: self.pieces.below(&row.interval(token)),
                        paths: vec![path],
                    };
                    drawn.push((token as u32, there));
                }
            }
        }
        drawn
    }

    /// What a rule does with the tokens of these paths, which are those of some children, each
    /// with the paths that are there: the place of the child that is asked, once a path and level,
    /// and how. `None` of another rule, and where nothing was drawn.
    pub(super) fn at_node(
        &self,
        rule: RuleName,
        children: &[(usize, &Self)],
        [p, q]: [&[f64]; 2],
    ) -> Option<(Vec<usize>, InTurn)> {
        let levels = coded_levels(rule)?;
        let (mut places, mut drafts) = (Vec::new(), Vec::new());
        for path in &self.paths {
            let has = |(_, there): &(usize, &Self)| there.paths.contains(path);
            let place = children.iter().position(has)?;
            places.push(place);
            drafts.push((*path, children.get(place)?.0));
        }
        let step = CodedRow::new(p, q).in_turn(&self.pieces, &drafts, &levels);
        let asked = places.iter().copied().cycle();
        Some((asked.take(step.ratios.len()).collect(), step))
    }
}
