//! Drafts and output as functions of one noise, which kernel and vector share.

use super::arrays::Arrays;
use super::rows::wide;
use super::situation::Vector;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Noises of a vector.
const NOISES: usize = 12;
/// Two tokens that are as near as this, relatively, could change places by rounding.
const APART: f64 = 1e-4;

/// Adds a vector with its noises, and what is drafted and put out at each.
pub(super) fn push(
    arrays: &mut Arrays,
    vector: &Vector,
    drafts: usize,
    few: bool,
    random: &mut ChaCha8Rng,
) {
    let (p, q) = (&vector.target, &vector.draft);
    let v = p.first().map_or(0, Vec::len);
    arrays.put("target", &[1, v], p.iter().flatten());
    arrays.put("draft", &[1, v], q.iter().flatten());
    let rows = [p, q].map(|rows| rows.first().map_or_else(Vec::new, |row| wide(row)));
    let count = if few { 2 } else { NOISES };
    let (mut noises, mut drafted, mut ends) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
    while noises.len() < count {
        let noise: Vec<f32> = (0..v).map(|_| exponential(random)).collect();
        let first = |row: &[f64], most| first_to_ring(&noise, row, most);
        let (Some(tokens), Some(own)) = (first(&rows[1], drafts), first(&rows[0], 1)) else {
            continue;
        };
        let token = own.first().copied().unwrap_or(-1);
        let place = tokens.iter().position(|&draft| draft == token);
        ends[0].push(token);
        ends[1].push(place.unwrap_or(drafts) as i64);
        drafted.extend(tokens);
        noises.push(noise);
    }
    arrays.put("noise", &[count, v], noises.iter().flatten());
    arrays.put("noise_drafts", &[count, drafts], drafted);
    let [tokens, slots] = ends;
    arrays.put("noise_token", &[count], tokens);
    arrays.put("noise_accepted", &[count], slots);
}

/// -ln of an even number, as kernels have it.
fn exponential(random: &mut ChaCha8Rng) -> f32 {
    (-(1.0 - random.random::<f64>()).ln()).max(1e-12) as f32
}

/// The tokens whose clocks ring first, -1 behind the last of a positive rate; none where two are too
/// near to tell.
fn first_to_ring(noise: &[f32], rates: &[f64], most: usize) -> Option<Vec<i64>> {
    let all = noise.iter().zip(rates).zip(0i64..);
    let clocks = all.filter(|((_, rate), _)| **rate > 0.0);
    let clocks = clocks.map(|((&noise, rate), token)| (f64::from(noise) / rate, token));
    let mut clocks: Vec<(f64, i64)> = clocks.collect();
    clocks.sort_by(|a, b| a.0.total_cmp(&b.0));
    clocks.truncate(most + 1);
    let is_near = |two: &[(f64, i64)]| two[1].0 <= two[0].0 * (1.0 + APART);
    if clocks.windows(2).any(is_near) {
        return None;
    }
    let mut tokens: Vec<i64> = clocks.iter().map(|one| one.1).take(most).collect();
    tokens.resize(most, -1);
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_ring_by_noise_over_rate() {
        let rings = |noise: &[f32], rates: &[f64], most| first_to_ring(noise, rates, most);
        // 4, 1, never, 2.
        let (noise, rates) = ([2.0, 0.25, 0.125, 1.0], [0.5, 0.25, 0.0, 0.5]);
        assert_eq!(rings(&noise, &rates, 2), Some(vec![1, 3]));
        assert_eq!(rings(&noise, &rates, 4), Some(vec![1, 3, 0, -1]));
        // 1 and 1.00005 are too near where either is asked for.
        let noise = [1.0, 1.00005, 0.5];
        assert_eq!(rings(&noise, &[1.0; 3], 2), None);
        assert_eq!(rings(&noise, &[1.0; 3], 1), Some(vec![2]));
    }
}
