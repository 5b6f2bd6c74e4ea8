//! The likeliest token of a row.

/// The likeliest token of a row, of equal ones that with the lowest id, among those that it lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Likeliest {
    /// Its place in the row.
    pub place: usize,
    /// How many tokens the row lists: entries that are not NaN.
    pub listed: usize,
    /// How many of them are as likely.
    pub equal: usize,
}

impl Likeliest {
    /// Finds it, given the ids of tokens if they are not their places. `None` where none is listed.
    ///
    /// ```
    /// use specgap_entries::Likeliest;
    /// let found = Likeliest::of(&[1.0, f64::NAN, 2.0, 2.0], &[7, 1, 6, 5]).unwrap();
    /// assert_eq!((found.place, found.listed, found.equal), (3, 3, 2));
    /// ```
    pub fn of(entries: &[f64], ids: &[u32]) -> Option<Self> {
        let id = |place: usize| ids.get(place).map_or(place, |&id| id as usize);
        let mut best: Option<Self> = None;
        let mut listed = 0;
        for (place, &x) in entries.iter().enumerate() {
            if x.is_nan() {
                continue;
            }
            listed += 1;
            match &mut best {
                Some(best) if x < entries[best.place] => {}
                Some(best) if x == entries[best.place] => {
                    best.equal += 1;
                    if id(best.place) > id(place) {
                        best.place = place;
                    }
                }
                _ => {
                    best = Some(Self {
                        place,
                        listed: 0,
                        equal: 1,
                    });
                }
            }
        }
        best.map(|best| Self { listed, ..best })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_tokens_the_lowest_id_is_taken() {
        let of = |row: &[f64], ids: &[u32]| {
            Likeliest::of(row, ids).map(|found| (found.place, found.listed, found.equal))
        };
        assert_eq!(of(&[1.0, 3.0, 3.0, 2.0], &[]), Some((1, 4, 2)));
        assert_eq!(of(&[1.0, 3.0, 3.0, 2.0], &[0, 9, 8, 7]), Some((2, 4, 2)));
        assert_eq!(of(&[3.0, f64::NAN, 1.0], &[]), Some((0, 2, 1)));
        let masked = f64::NEG_INFINITY;
        assert_eq!(of(&[masked, masked], &[4, 2]), Some((1, 2, 2)));
        assert_eq!(of(&[-0.0, 0.0], &[]), Some((0, 2, 2)));
        assert_eq!(of(&[f64::NAN], &[]), None);
        assert_eq!(of(&[], &[]), None);
    }
}
