//! A log with text and draft paths of two known chains, made where a test needs one.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use specgap::log::{
    Dtype, Layout, LogWriter, Metadata, Position, Rollout, RolloutRecord, Sampling,
};
use std::path::Path;

/// Tokens of the vocabulary; the last one may end a text.
pub const V: usize = 5;

/// What the log is made of.
#[derive(Clone, Debug)]
pub struct Made {
    pub prompts: usize,
    /// The most tokens of a text.
    pub tokens: usize,
    /// Draft paths at every second position; none if 0.
    pub paths: usize,
    /// Tokens of a path.
    pub length: usize,
    /// Whether token V - 1 ends a text.
    pub ends: bool,
    /// Temperature that the paths claim.
    pub temperature: f64,
    pub seed: u64,
}

impl Default for Made {
    fn default() -> Self {
        Self {
            prompts: 30,
            tokens: 12,
            paths: 4,
            length: 3,
            ends: true,
            temperature: 1.0,
            seed: 1,
        }
    }
}

/// The rows of p and q behind a token, which sum to 1.
pub fn rows(last: usize) -> [Vec<f64>; 2] {
    let row = |step: usize| {
        let weights: Vec<f64> = (0..V)
            .map(|i| ((i * step + 3 * last + i * i) % 7) as f64 + 0.5)
            .collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|w| w / sum).collect()
    };
    [row(3), row(5)]
}

fn draw(rng: &mut ChaCha8Rng, row: &[f64]) -> usize {
    let mut left: f64 = rng.random();
    let token = row.iter().position(|mass| {
        left -= mass;
        left < 0.0
    });
    token.unwrap_or(row.len() - 1)
}

/// Writes it.
pub fn write(path: &Path, made: &Made) {
    let mut metadata = Metadata {
        sampling: Some(Sampling {
            temperature: 1.0,
            max_tokens: Some(made.tokens),
            ..Sampling::default()
        }),
        rollouts: (made.paths > 0).then_some(RolloutRecord {
            version: if made.paths > 1 { 2 } else { 1 },
            tokens: made.length,
            every: 2,
            inclusion_probability: 0.5,
            paths: made.paths,
            temperature: made.temperature,
            target: true,
        }),
        ..Metadata::default()
    };
    let stops: Vec<usize> = if made.ends { vec![V - 1] } else { Vec::new() };
    let stops = serde_json::to_value(stops).unwrap();
    metadata.extra.insert("stop_tokens".to_owned(), stops);
    let layout = Layout {
        dtype: Dtype::F32,
        ..Layout::new(V)
    };
    let mut rng = ChaCha8Rng::seed_from_u64(made.seed);
    let mut writer = LogWriter::create(path, metadata, layout).unwrap();
    let logits = |row: &[f64]| row.iter().map(|x| x.ln() as f32).collect::<Vec<f32>>();
    let mut texts: Vec<Vec<usize>> = Vec::new();
    for prompt in 0..made.prompts {
        let (mut text, mut last) = (Vec::new(), prompt % V);
        while text.len() < made.tokens && !(made.ends && text.last() == Some(&(V - 1))) {
            last = draw(&mut rng, &rows(last)[0]);
            text.push(last);
        }
        texts.push(text);
    }
    // Texts lie side by side, as a capture that runs prompts together writes them.
    for position in 0..made.tokens {
        for (prompt, text) in texts.iter().enumerate() {
            let Some(&token) = text.get(position) else {
                continue;
            };
            let last = position
                .checked_sub(1)
                .map_or(prompt % V, |before| text[before]);
            let [target, draft] = rows(last);
            let number = writer.positions();
            writer
                .append(&Position {
                    prompt_id: prompt as i64,
                    position: position as i64,
                    token: token as i64,
                    target: &logits(&target),
                    draft: &logits(&draft),
                })
                .unwrap();
            if position % 2 != prompt % 2 {
                continue;
            }
            for _ in 0..made.paths {
                let mut drawn = Drawn::default();
                let mut before = last;
                for _ in 0..made.length {
                    let [p, q] = rows(before);
                    before = draw(&mut rng, &q);
                    drawn.tokens.push(before as u32);
                    drawn.q.push(q[before]);
                    drawn.p.push(p[before]);
                }
                writer
                    .append_rollout(&Rollout {
                        position: number,
                        tokens: &drawn.tokens,
                        q: &drawn.q,
                        target_p: &drawn.p,
                        ..Rollout::default()
                    })
                    .unwrap();
            }
        }
    }
    writer.commit().unwrap();
}

#[derive(Default)]
struct Drawn {
    tokens: Vec<u32>,
    q: Vec<f64>,
    p: Vec<f64>,
}
