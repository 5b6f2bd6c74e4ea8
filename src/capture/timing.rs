//! Times of a decoder's parts as a small file: what a speed is predicted from.

use super::decode::StepTimes;
use serde::Serialize;

/// A time of many, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Timing {
    /// The median.
    pub value: f64,
    /// The median's standard error, 1.2533 s/sqrt(n) with s the interquartile range over
    /// 1.349: that of normal errors, and little moved by stalls of the machine.
    pub spread: f64,
}

impl Timing {
    /// The median of some times; nothing if there are none.
    ///
    /// # Example
    ///
    /// ```
    /// use specgap::capture::Timing;
    ///
    /// let timing = Timing::of(&[0.3, 0.1, 0.2, 0.4, 9.0]).unwrap();
    /// assert_eq!(timing.value, 0.3);
    /// assert!((timing.spread - 1.2533 * (0.2 / 1.349) / 5f64.sqrt()).abs() < 1e-4);
    /// assert_eq!(Timing::of(&[]), None);
    /// ```
    pub fn of(seconds: &[f64]) -> Option<Self> {
        let mut sorted = seconds.to_vec();
        sorted.sort_by(f64::total_cmp);
        // Between two of the sorted, where the place is none of theirs.
        let quantile = |share: f64| -> Option<f64> {
            let place = share * sorted.len().checked_sub(1)? as f64;
            let (below, above) = (place.floor() as usize, place.ceil() as usize);
            let (low, high) = (*sorted.get(below)?, *sorted.get(above)?);
            Some(low + (high - low) * (place - place.floor()))
        };
        let width = quantile(0.75)? - quantile(0.25)?;
        // sqrt(pi/2), and twice the normal law's upper quartile.
        let error = (std::f64::consts::PI / 2.0).sqrt() * width / 1.348_979_5;
        Some(Self {
            value: quantile(0.5)?,
            spread: error / (sorted.len() as f64).sqrt(),
        })
    }
}

/// A verifying pass of so many tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PassTiming {
    /// Tokens that the target is run over: the last one of the text, and the drafts.
    pub tokens: usize,
    /// How long that takes.
    #[serde(flatten)]
    pub timing: Timing,
}

/// What a round's time consists of: `specgap length --timings` reads it.
///
/// ```text
/// round with k drafts = k t_d + t_v(k + 1) + t_o
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timings {
    /// `specgap-timings`.
    pub format: &'static str,
    /// 1.
    pub version: u32,
    /// `s`.
    pub unit: &'static str,
    /// A step of the target that decodes alone, drawing included.
    pub t_0: Timing,
    /// A step of the draft within a round, drawing included.
    pub t_d: Timing,
    /// A run of the target over n tokens with their laws, ascending in n.
    pub t_v: Vec<PassTiming>,
    /// The rest of a round: the rule, and rolling back.
    pub t_o: Timing,
    /// What was timed: models, device, settings.
    pub what: String,
}

impl Timings {
    /// The medians of steps; nothing if some kind of step was never run.
    pub fn of(times: &StepTimes, what: String) -> Option<Self> {
        let t_v = times.verify.iter().filter_map(|(&tokens, seconds)| {
            let timing = Timing::of(seconds)?;
            Some(PassTiming { tokens, timing })
        });
        let t_v: Vec<_> = t_v.collect();
        if t_v.is_empty() {
            return None;
        }
        Some(Self {
            format: "specgap-timings",
            version: 1,
            unit: "s",
            t_0: Timing::of(&times.target_alone)?,
            t_d: Timing::of(&times.draft)?,
            t_v,
            t_o: Timing::of(&times.other)?,
            what,
        })
    }
}
