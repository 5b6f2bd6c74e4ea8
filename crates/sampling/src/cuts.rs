//! What a sampler keeps of a row.

use serde::{Deserialize, Serialize};
use specgap_log::log::{CutOrder, Log, Sampling, UnlistedTokens};

/// What an engine keeps of a row before it draws: all of these in a [`CutOrder`], each of what
/// those before it left, and what is left is renormalised.
///
/// Of equal tokens, those with lower ids come first. A share of 1 for `top_p`, and one of 0
/// for `min_p`, keep everything.
///
/// # Example
/// ```
/// use specgap_sampling::Cuts;
/// let cuts = |top_p| Cuts { top_p: Some(top_p), ..Cuts::default() };
/// assert!(!cuts(0.95).keep_all());
/// assert!(cuts(1.0).keep_all());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cuts {
    /// The k most probable tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<usize>,
    /// The fewest most probable tokens that have this share of what is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// The tokens that have at least this share of the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f64>,
    /// In which order these are done, and the temperature; the default where it is not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_order: Option<CutOrder>,
}

impl Cuts {
    /// Leaves out those that keep everything.
    pub fn effective(self) -> Self {
        let cuts = Self {
            top_p: self.top_p.filter(|&p| p < 1.0),
            min_p: self.min_p.filter(|&p| p > 0.0),
            ..self
        };
        match cuts.keep_all() {
            true => Self::default(),
            false => cuts,
        }
    }

    /// Tells whether any is named, be it one that keeps everything.
    pub fn are_named(self) -> bool {
        self.top_k.is_some() || self.top_p.is_some() || self.min_p.is_some()
    }

    /// Tells whether nothing is cut.
    pub fn keep_all(self) -> bool {
        let all = |p: Option<f64>, end: f64| p.is_none_or(|p| p == end);
        self.top_k.is_none() && all(self.top_p, 1.0) && all(self.min_p, 0.0)
    }

    /// Their order: the default where none is told.
    pub fn order(self) -> CutOrder {
        self.cut_order.unwrap_or_default()
    }

    /// Returns what was kept of a log's rows as its text was sampled. Rows of all that can be drawn are
    /// what was left, and not cut again.
    pub fn of_text(log: &Log) -> Self {
        let metadata = log.metadata();
        let sampling = metadata.sampling.as_ref().filter(|_| log.has_tokens());
        match metadata.unlisted {
            Some(UnlistedTokens::NeverDrawn) => Self::default(),
            _ => sampling.map_or_else(Self::default, |one| Self::from(one).effective()),
        }
    }

    /// Takes another's order, if it has none of its own.
    #[must_use]
    pub fn or_as(self, other: Self) -> Self {
        Self {
            cut_order: self.cut_order.or(other.cut_order),
            ..self
        }
    }

    /// Returns the same with an order that is told.
    #[must_use]
    pub fn told(self) -> Self {
        Self {
            cut_order: Some(self.order()),
            ..self
        }
    }

    /// Takes the order that logs say, where none is told yet.
    ///
    /// # Errors
    /// Logs whose orders keep other tokens at one of the temperatures.
    pub fn ordered<'a>(
        self,
        logs: impl IntoIterator<Item = &'a Log>,
        temperatures: &[f64],
    ) -> Result<Self, String> {
        if self.cut_order.is_some() || self.keep_all() {
            return Ok(self);
        }
        let mut found: Option<(Self, &Log)> = None;
        for log in logs {
            let sampling = log.metadata().sampling.as_ref();
            let cut_order = sampling.and_then(|sampling| sampling.cut_order);
            let own = Self { cut_order, ..self };
            let Some((first, name)) = found else {
                found = Some((own, log));
                continue;
            };
            if temperatures.iter().any(|&t| own.at(t) != first.at(t)) {
                return Err(format!(
                    "{} was sampled with cuts in the order {}, and {} in the order {}; give one for \
                     both with ⟨cut-order⟩",
                    name.path().display(),
                    first.order(),
                    log.path().display(),
                    own.order()
                ));
            }
            if first.cut_order.is_none() {
                found = Some((own, log));
            }
        }
        Ok(found.map_or(self, |(own, _)| own))
    }

    /// Those that cut, in their order.
    pub fn in_order(self) -> impl Iterator<Item = Cut> {
        let cuts = self.effective();
        let [k, m] = cuts.order().before_top_p(cuts.min_p.is_some());
        let top_k = cuts.top_k.map(Cut::TopK);
        let top_p = cuts.top_p.map(Cut::TopP);
        let min_p = cuts.min_p.map(Cut::MinP);
        let on = |is: bool, cut: Option<Cut>| cut.filter(|_| is);
        let all = [
            on(k, top_k),
            on(m, min_p),
            top_p,
            on(!k, top_k),
            on(!m, min_p),
        ];
        all.into_iter().flatten()
    }

    /// Takes the one order of all that keep the same of every row at a temperature.
    ///
    /// ```
    /// use specgap_sampling::Cuts;
    /// let cuts = Cuts { top_k: Some(40), cut_order: "llama.cpp".parse().ok(), ..Cuts::default() };
    /// assert_eq!(cuts.at(0.7), Cuts { cut_order: "transformers".parse().ok(), ..cuts });
    /// let more = Cuts { min_p: Some(0.1), ..cuts };
    /// assert_eq!(more.at(0.7), more);
    /// assert_ne!(more.at(1.0), more);
    /// ```
    pub fn at(self, temperature: f64) -> Self {
        let cuts = self.effective();
        let asked = [
            cuts.top_k.is_some(),
            cuts.top_p.is_some(),
            cuts.min_p.is_some(),
        ];
        Self {
            cut_order: Some(cuts.order().among(asked, temperature)),
            ..cuts
        }
    }

    /// Lists the same in all orders that keep something else at a temperature.
    pub fn others(self, temperature: f64) -> impl Iterator<Item = Self> {
        let own = self.at(temperature);
        let all = CutOrder::all().map(move |order| {
            let cut_order = Some(order);
            Self { cut_order, ..own }
        });
        // Each order by its own name.
        all.filter(move |one| one.at(temperature) == *one && *one != own)
    }

    /// Tells whether it matters at a temperature in which order they come.
    pub fn depend_on_order(self, temperature: f64) -> bool {
        self.others(temperature).next().is_some()
    }

    /// Each that is given: its name and its number.
    pub fn words(self) -> impl Iterator<Item = (&'static str, String)> {
        let share = |x: f64| format!("{x:?}");
        let all = [
            ("top-k", self.top_k.map(|k| k.to_string())),
            ("top-p", self.top_p.map(share)),
            ("min-p", self.min_p.map(share)),
        ];
        let given = all.into_iter();
        given.filter_map(|(name, number)| Some((name, number?)))
    }

    /// The options that ask for it, each after a space.
    pub fn options(self) -> String {
        let words = self.words();
        let mut options: String = words
            .map(|(name, number)| format!(" --{name} {number}"))
            .collect();
        if let Some(order) = self.cut_order.filter(|_| !options.is_empty()) {
            options += &format!(" --cut-order {order}");
        }
        options
    }

    /// Puts them in words, with the order where it matters at one of the temperatures: `top-k 40,
    /// top-p 0.95, in the order joint`.
    ///
    /// ```
    /// use specgap_sampling::Cuts;
    /// let cuts = Cuts { top_p: Some(0.9), ..Cuts::default() };
    /// assert_eq!(cuts.in_words(&[0.0, 1.0]), "top-p 0.9");
    /// let at = "top-p 0.9, in the order k,p,m (assumed; else give --cut-order)";
    /// assert_eq!(cuts.in_words(&[0.7, 1.0]), at);
    /// ```
    pub fn in_words(self, temperatures: &[f64]) -> String {
        let words = self
            .words()
            .map(|(name, number)| format!("{name} {number}"));
        let mut words = words.collect::<Vec<_>>().join(", ");
        if temperatures.iter().any(|&t| self.depend_on_order(t)) {
            let (order, how) = match self.cut_order {
                Some(order) => (order, ""),
                None => (self.order(), " (assumed; else give --cut-order)"),
            };
            words += &format!(", in the order {order}{how}");
        }
        words
    }

    /// Refuses what is out of range; `of` comes before an option's name.
    pub fn check(self, of: &str) -> Result<(), String> {
        if self.top_k == Some(0) {
            return Err(format!(
                "⟨{of}top-k 0⟩ leaves nothing to draw; give at least 1"
            ));
        }
        if let Some(p) = self.top_p.filter(|p| !(*p > 0.0 && *p <= 1.0)) {
            return Err(format!(
                "⟨{of}top-p {p}⟩ is out of range; it is above 0 and at most 1"
            ));
        }
        if let Some(p) = self.min_p.filter(|p| !(0.0..=1.0).contains(p)) {
            return Err(format!(
                "⟨{of}min-p {p}⟩ is out of range; it is from 0 to 1"
            ));
        }
        Ok(())
    }
}

impl From<&Sampling> for Cuts {
    fn from(sampling: &Sampling) -> Self {
        Self {
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            min_p: sampling.min_p,
            cut_order: sampling.cut_order,
        }
    }
}

/// One of the cuts, which keeps so many of the most probable tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cut {
    /// As many.
    TopK(usize),
    /// The fewest that have this share of the mass.
    TopP(f64),
    /// Those that have at least this share of the largest.
    MinP(f64),
}

impl Cut {
    /// Counts those of the `among` most probable tokens that it keeps; weights fall with the rank,
    /// from 0. Behind these there may be a mass `beyond`; `None` if a top-p needs some of it.
    ///
    /// O(`among`) for a top-p, and as many weights as it keeps for a min-p.
    ///
    /// ```
    /// use specgap_sampling::Cut;
    /// let row = [0.5, 0.25, 0.125, 0.0625];
    /// let keep = |cut: Cut, among, beyond| cut.keep(among, beyond, |rank| row[rank]);
    /// assert_eq!(keep(Cut::TopP(0.75), 4, 0.0625), Some(2));
    /// assert_eq!(keep(Cut::TopP(0.75), 1, 0.0), Some(1));
    /// assert_eq!(keep(Cut::TopP(0.95), 4, 0.0625), None);
    /// assert_eq!(keep(Cut::MinP(0.25), 4, 0.0625), Some(3));
    /// ```
    pub fn keep(
        self,
        among: usize,
        beyond: f64,
        mut weight: impl FnMut(usize) -> f64,
    ) -> Option<usize> {
        match self {
            Self::TopK(k) => Some(among.min(k)),
            Self::TopP(p) => {
                let total = (0..among).map(&mut weight).sum::<f64>() + beyond;
                let mut held = 0.0;
                for rank in 0..among {
                    held += weight(rank);
                    if held >= p * total {
                        return Some(rank + 1);
                    }
                }
                // Rounding alone lacks some.
                (beyond == 0.0).then_some(among)
            }
            Self::MinP(share) => {
                let least = if among > 0 { share * weight(0) } else { 0.0 };
                Some((0..among).take_while(|&rank| weight(rank) >= least).count())
            }
        }
    }
}
