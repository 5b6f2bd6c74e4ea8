//! One time of many.

/// One time of many, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The median.
    pub median: f64,
    /// The median's standard error, 1.2533 s/sqrt(n) with s the interquartile range over
    /// 1.349: that of normal errors, and little moved by stalls of the machine.
    pub standard_error: f64,
}

impl Timing {
    /// The median of some times; nothing if there are none.
    ///
    /// # Example
    ///
    /// ```
    /// use specgap_capture::Timing;
    ///
    /// let timing = Timing::of(&[0.3, 0.1, 0.2, 0.4, 9.0]).unwrap();
    /// assert_eq!(timing.median, 0.3);
    /// assert!((timing.standard_error - 1.2533 * (0.2 / 1.349) / 5f64.sqrt()).abs() < 1e-4);
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
            median: quantile(0.5)?,
            standard_error: error / (sorted.len() as f64).sqrt(),
        })
    }
}
