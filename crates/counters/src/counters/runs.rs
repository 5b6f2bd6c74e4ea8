//! What rounds of K drafts tell of rounds of k, by runs of accepted tokens.
//!
//! Take a coin for each token of a text: it comes up where a draft would be accepted there. Rounds of
//! whatever length end right behind a token whose coin failed, as a correction or as the bonus token.
//! Between two such tokens stand m tokens, and rounds of k drafts need ceil(m/(k + 1)) of them. So
//! all lengths follow from how long runs are, and rounds of K drafts tell m modulo K + 1: where k + 1
//! divides K + 1, rounds of k are known exactly. Elsewhere it is open on which runs the wholly
//! accepted rounds stand.

/// Rounds of at most `longest` drafts, by how many they accepted.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// Rounds that accepted exactly j drafts, j = 0, .., K.
    pub(super) exactly: Vec<f64>,
    /// Drafts that rounds of K would have made, and these did not.
    pub(super) untried: f64,
    /// Texts, of whose ends nothing is known; 0 where requests are not told apart.
    pub(super) texts: f64,
}

/// An estimate, with how it moves with each kind of round.
pub(super) struct Expected {
    /// Tokens a round.
    pub(super) mean: f64,
    /// What one more round that accepts j drafts adds to the sum over all rounds.
    pub(super) moves: Vec<f64>,
}

impl Runs {
    fn longest(&self) -> usize {
        self.exactly.len().saturating_sub(1)
    }

    fn rounds(&self) -> f64 {
        self.exactly.iter().sum()
    }

    fn tokens(&self) -> f64 {
        self.sum(|accepted| (accepted + 1) as f64)
    }

    /// The sum over rounds of what each number of accepted drafts comes to.
    fn sum(&self, of: impl Fn(usize) -> f64) -> f64 {
        let counts = self.exactly.iter().enumerate();
        counts.map(|(accepted, count)| count * of(accepted)).sum()
    }

    /// Rounds that accept at least `place` drafts.
    fn reached(&self, place: usize) -> f64 {
        self.exactly.iter().skip(place).sum()
    }

    /// The least and the most tokens a round of `length` drafts can put out.
    ///
    /// # Exactness
    /// Exact for drafters whose coin at a token does not depend on where the round started, up to the
    /// round in which a whole run of the server ends, and for coins that depend on the place within a
    /// round alone, for which `1 + S_1 + .. + S_k` is the truth: the ends hold for both. Where texts
    /// are counted, all that their last rounds leave open is between the ends. Linear in K.
    pub(super) fn ends(&self, length: usize) -> [f64; 2] {
        let (longest, size) = (self.longest(), length + 1);
        let pieces = |accepted: usize| (accepted + 1).div_ceil(size) as f64;
        let most = self.sum(pieces);
        // A wholly accepted round may go on in the next, and saves at most the piece begun.
        let whole = self.exactly.last().copied().unwrap_or(0.0);
        let saved = pieces(longest) - ((longest + 1) / size) as f64;
        // So may a round that drafted no more than it accepted: one such leaves K - j drafts untried.
        let (mut untried, mut short) = (self.untried, 0.0);
        for (accepted, &count) in self.exactly.iter().enumerate().rev().skip(1) {
            if (accepted + 1) % size == 0 {
                continue;
            }
            let each = (longest - accepted) as f64;
            let some = count.min((untried / each).floor());
            (untried, short) = (untried - some * each, short + some);
        }
        let tokens = self.tokens();
        let least = (most - whole * saved - short).max(tokens / size as f64);
        let mut ends = [tokens / most, tokens / least];
        if self.texts > 0.0 {
            let (texts, size) = (self.texts, size as f64);
            // The last round of a text may be all but its first token too long, or too short.
            let tail = texts * longest as f64;
            let cut = (tokens - tail) / (most - tail / size);
            let is_cut = most * size > tail && cut > 0.0;
            let low = if is_cut { cut } else { 1.0 };
            let without = match least > texts {
                true => (tokens - texts) / (least - texts),
                false => size,
            };
            let high = without.max((tokens + texts * (size - 1.0)) / least);
            ends = [ends[0].min(low), ends[1].max(high)];
        }
        let [low, high] = self.by_place(length);
        let within = |end: f64| end.clamp(1.0, size as f64);
        [within(ends[0].min(low)), within(ends[1].max(high))]
    }

    /// `1 + S_1 + .. + S_k`, with the last conditional rate held beyond K, and the same if all
    /// places that were not tried were accepted.
    fn by_place(&self, length: usize) -> [f64; 2] {
        let (longest, rounds) = (self.longest(), self.rounds());
        let counted = (0..=length.min(longest)).map(|place| self.reached(place));
        let counted: f64 = counted.sum();
        let held = self.held();
        let mut beyond = self.reached(longest);
        let mut tokens = counted;
        for _ in longest..length {
            beyond *= held;
            tokens += beyond;
        }
        let share = length.min(longest).saturating_sub(1) as f64 / (longest.max(2) - 1) as f64;
        [tokens / rounds, (tokens + self.untried * share) / rounds]
    }

    /// The last conditional rate, S_K / S_(K - 1).
    fn held(&self) -> f64 {
        let longest = self.longest();
        let before = self.reached(longest.saturating_sub(1));
        let last = self.reached(longest);
        if before > 0.0 { last / before } else { 0.0 }
    }

    /// Tokens a round of `length` drafts, if rounds follow each other independently and the coin behind
    /// a wholly accepted one comes up as often as the last one.
    ///
    /// A chain of i wholly accepted rounds, which stands with chance g^i, leaves a round of k drafts at
    /// `i (K + 1)` modulo `k + 1` of its tokens.
    pub(super) fn expected(&self, length: usize) -> Expected {
        let (longest, size) = (self.longest(), length + 1);
        let rounds = self.rounds();
        let goes_on = self.reached(longest) / rounds * self.held();
        let phase = |chain: usize| chain * (longest + 1) % size;
        let period = (1..=size).find(|&chain| phase(chain) == 0).unwrap_or(size);
        let weights = |goes_on: f64| -> Vec<f64> {
            let powers = (0..period).map(|chain| goes_on.powi(chain as i32));
            let powers: Vec<f64> = powers.collect();
            let sum: f64 = powers.iter().sum();
            powers.into_iter().map(|power| power / sum).collect()
        };
        // Rounds of k drafts that start within a round that accepts so many.
        let starts = |weights: &[f64], accepted: usize| -> f64 {
            let at = |(chain, weight): (usize, &f64)| {
                let behind = phase(chain);
                let from = behind.div_ceil(size);
                weight * ((behind + accepted + 1).div_ceil(size) - from) as f64
            };
            weights.iter().enumerate().map(at).sum()
        };
        let each = |goes_on: f64| -> Vec<f64> {
            let weights = weights(goes_on);
            let all = 0..=longest;
            all.map(|accepted| starts(&weights, accepted)).collect()
        };
        let calls_of = |each: &[f64]| self.mean(each);
        let own = each(goes_on);
        let (calls, tokens) = (calls_of(&own), self.tokens() / rounds);
        let mean = tokens / calls;
        // How calls move with the chance to go on, and that with the last two places.
        let step = 1e-5;
        let [low, high] = [(goes_on - step).max(0.0), (goes_on + step).min(1.0)];
        let slope = (calls_of(&each(high)) - calls_of(&each(low))) / (high - low);
        let held = self.held();
        let by_last = 2.0 * held - held * held;
        let by_before = -held * held;
        let moves = |(accepted, calls_there): (usize, &f64)| {
            let chance = match longest - accepted {
                0 => by_last,
                1 => by_before,
                _ => 0.0,
            };
            (((accepted + 1) as f64) - mean * calls_there - mean * slope * chance) / calls
        };
        let moves: Vec<f64> = own.iter().enumerate().map(moves).collect();
        Expected {
            mean,
            moves: self.centred(moves),
        }
    }

    /// Takes off the mean over all rounds.
    pub(super) fn centred(&self, mut moves: Vec<f64>) -> Vec<f64> {
        let mean = self.mean(&moves);
        moves.iter_mut().for_each(|one| *one -= mean);
        moves
    }

    /// The mean over rounds of what each number of accepted drafts comes to.
    fn mean(&self, of: &[f64]) -> f64 {
        let pairs = self.exactly.iter().zip(of);
        pairs.map(|(count, by)| count * by).sum::<f64>() / self.rounds()
    }
}
