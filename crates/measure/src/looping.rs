//! Texts that repeat themselves.
//!
//! A model that falls into a loop writes the same piece again and again. Its rows there are
//! easy to draft, and nothing like other text: rates over such positions are about the loop.

use super::data::Repetition;
use specgap_base::sorted::Map;
use specgap_log::log::Label;
use std::collections::HashSet;

/// Longest piece that is looked for.
const LONGEST_PIECE: usize = 32;
/// Times that a piece has to stand in a row.
const TIMES: usize = 3;
/// Fewest tokens of a stretch that counts, however short its piece.
const FEWEST: usize = 16;

/// Positions whose index is in their text already: since the last 0, at which a text of the same
/// prompt begins anew.
pub(super) fn repeated_positions(labels: &[Label]) -> usize {
    let mut texts: Map<i64, HashSet<i64>> = Map::new();
    let mut repeated = 0;
    for label in labels {
        let (Some(prompt), Some(position)) = (label.prompt, label.position) else {
            continue;
        };
        let text = texts.at(prompt);
        if position == 0 {
            text.clear();
        }
        repeated += usize::from(!text.insert(position));
    }
    repeated
}

/// Counts the positions of stretches that repeat a piece: of at least 16 tokens, and of a piece
/// of at most 32 tokens at least three times over. `None` where the labels do not tell the
/// texts. O(32 N).
pub(super) fn repetition(labels: &[Label]) -> Option<Repetition> {
    let mut texts: Map<i64, Vec<(i64, i64)>> = Map::new();
    for label in labels {
        let token = label.token.filter(|&token| token >= 0)?;
        let text = texts.at(label.prompt?);
        text.push((label.position?, token));
    }
    let mut found = Repetition {
        texts: texts.len(),
        ..Repetition::default()
    };
    for text in texts.values_mut() {
        text.sort_unstable();
        let looping = looping(text);
        found.looping_texts += usize::from(looping > 0);
        found.looping_positions += looping;
    }
    Some(found)
}

/// Positions of a text, in the order of their indices, that lie in a stretch.
fn looping(text: &[(i64, i64)]) -> usize {
    let mut marked = vec![false; text.len()];
    for piece in 1..=LONGEST_PIECE.min(text.len() / TIMES) {
        let repeats = |at: usize| {
            let [before, here] = [at - piece, at].map(|at| text.get(at));
            // Indices that lack one between them are no text.
            before.zip(here).is_some_and(|(before, here)| {
                before.1 == here.1 && here.0 - before.0 == piece as i64
            })
        };
        let mut begin = piece;
        for end in piece..=text.len() {
            if end < text.len() && repeats(end) {
                continue;
            }
            // Tokens begin..end equal those a piece before.
            let stretch = begin - piece..end;
            if end > begin && stretch.len() >= (TIMES * piece).max(FEWEST) {
                marked[stretch].fill(true);
            }
            begin = end + 1;
        }
    }
    marked.into_iter().filter(|&marked| marked).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(tokens: &[i64]) -> Vec<(i64, i64)> {
        (0..).zip(tokens.iter().copied()).collect()
    }

    #[test]
    fn stretches_that_repeat_a_piece_are_counted_once() {
        let plain: Vec<i64> = (0..40).collect();
        assert_eq!(looping(&text(&plain)), 0);
        // A piece of 5, four times, between other tokens.
        let mut tokens = plain[..7].to_vec();
        for _ in 0..4 {
            tokens.extend(100..105);
        }
        tokens.extend(50..60);
        assert_eq!(looping(&text(&tokens)), 20);
        // Twice only, and three times of a short piece in too few tokens.
        assert_eq!(looping(&text(&[&plain[..20], &plain[..20]].concat())), 0);
        assert_eq!(looping(&text(&[1, 2, 1, 2, 1, 2])), 0);
        // One token for long; a multiple of a piece is no second loop.
        assert_eq!(looping(&text(&[[9; 18].as_slice(), &[1, 2]].concat())), 18);
        // A gap in the indices ends it.
        let mut apart = text(&[9; 18]);
        for place in &mut apart[9..] {
            place.0 += 1;
        }
        assert_eq!(looping(&apart), 0);
    }

    #[test]
    fn texts_are_told_by_their_labels() {
        let label = |prompt: i64, position: i64, token: i64| Label {
            prompt: Some(prompt),
            position: Some(position),
            token: Some(token),
        };
        let labels: Vec<Label> = (0..20)
            .flat_map(|at| [label(0, at, 7), label(1, at, at)])
            .collect();
        let found = repetition(&labels).unwrap();
        assert_eq!(found.texts, 2);
        assert_eq!((found.looping_texts, found.looping_positions), (1, 20));
        assert!(repetition(&[Label::default()]).is_none());
        assert!(repetition(&[label(0, 0, -1)]).is_none());
    }
}
