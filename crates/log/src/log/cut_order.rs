//! In which order a sampler cuts a row and divides by the temperature.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The order of top-k, top-p, min-p and the temperature.
///
/// Each cut keeps the most probable tokens down to some rank, and no temperature changes the
/// order of tokens. So a top-k and a min-p keep the same tokens wherever they stand, and a
/// top-p depends on which of the two came before it alone: the mass of what they left is what
/// it takes its share of. Orders that keep the same of every row are equal: `p,k,m` is `joint`.
///
/// As text it is `k`, `p` and `m` in any order, behind `,T` if the temperature comes last;
/// `joint`, or the name of a tool for what this does unless it is told otherwise:
///
/// |tool|order|read in|
/// |---|---|---|
/// |`transformers`|`k,p,m`|transformers 5.24.0, `GenerationMixin._get_logits_processor`|
/// |`vllm`|`m,k,p`|vLLM v1, `Sampler.sample`: the temperature, min-p, then top-k and top-p|
/// |`sglang`|`joint`; `k,p,m` where a request has a min-p|SGLang 0.5.23, `Sampler` (FlashInfer)|
/// |`sglang-verifier`|`k,p,m`|SGLang 0.5.23, `top_k_renorm_prob`, then `top_p_renorm_prob`|
/// |`llama.cpp`|`k,p,m,T`|`common_params_sampling::samplers`|
/// |`mlx-lm`|`p,m,k,T`|mlx-lm 0.32.2, `make_sampler`|
///
/// ```
/// use specgap_log::log::CutOrder;
/// let order: CutOrder = "llama.cpp".parse()?;
/// assert_eq!((order.to_string().as_str(), order.temperature_last()), ("k,p,m,T", true));
/// assert_eq!("p,k,m".parse(), "joint".parse::<CutOrder>());
/// assert_eq!(CutOrder::default(), "transformers".parse()?);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "schema", schemars(with = "String"))]
pub struct CutOrder {
    before: Before,
    temperature_last: bool,
}

/// What comes before a top-p.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Before {
    Nothing,
    #[default]
    TopK,
    MinP,
    Both,
    /// The top-k, if there is a min-p.
    SGLang,
}

/// Orders by their canonical names, and other names of the same.
const NAMES: [(Before, &str, &[&str]); 5] = [
    (Before::TopK, "k,p,m", &["transformers", "sglang-verifier"]),
    (Before::Nothing, "joint", &["p,k,m", "p,m,k"]),
    (Before::Both, "m,k,p", &["k,m,p", "vllm"]),
    (Before::MinP, "m,p,k", &[]),
    (Before::SGLang, "sglang", &[]),
];

impl CutOrder {
    /// The names of tools that stand for their orders.
    pub const TOOLS: [&str; 6] = [
        "transformers",
        "vllm",
        "sglang",
        "sglang-verifier",
        "llama.cpp",
        "mlx-lm",
    ];

    /// SGLang's plain sampler, which has another order where there is a min-p.
    pub const SGLANG: Self = Self::of(Before::SGLang, false);
    /// vLLM's.
    pub const VLLM: Self = Self::of(Before::Both, false);
    /// That of llama.cpp's default chain.
    pub const LLAMA_CPP: Self = Self::of(Before::TopK, true);

    const fn of(before: Before, temperature_last: bool) -> Self {
        Self {
            before,
            temperature_last,
        }
    }

    /// All that differ: four ways to place a top-p, with the temperature first or last.
    pub fn all() -> impl Iterator<Item = Self> {
        let first = NAMES.into_iter().take(4);
        first.flat_map(|(before, ..)| [false, true].map(|last| Self::of(before, last)))
    }

    /// Tells whether rows are cut at temperature 1, and what is left is divided by the temperature.
    pub fn temperature_last(self) -> bool {
        self.temperature_last
    }

    /// Tells whether the top-k, and whether the min-p, comes before the top-p.
    pub fn before_top_p(self, has_min_p: bool) -> [bool; 2] {
        match self.before {
            Before::Nothing => [false, false],
            Before::TopK => [true, false],
            Before::MinP => [false, true],
            Before::Both => [true, true],
            Before::SGLang => [has_min_p, false],
        }
    }

    /// One order for all that keep the same where these of top-k, top-p and min-p are asked for;
    /// at temperature 0 all do.
    pub fn among(self, [top_k, top_p, min_p]: [bool; 3], temperature: f64) -> Self {
        if temperature == 0.0 {
            return Self::default();
        }
        let [k, m] = self.before_top_p(min_p);
        // What nothing depends on is as in the default.
        let before = match (k || !(top_k && top_p), m && top_p && min_p) {
            (false, false) => Before::Nothing,
            (true, false) => Before::TopK,
            (false, true) => Before::MinP,
            (true, true) => Before::Both,
        };
        let last = self.temperature_last && (top_p || min_p) && temperature != 1.0;
        Self::of(before, last)
    }
}

impl fmt::Display for CutOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(before, ..)| *before == self.before);
        f.write_str(name.map_or("", |(_, name, _)| name))?;
        f.write_str(if self.temperature_last { ",T" } else { "" })
    }
}

impl FromStr for CutOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "llama.cpp" => return Ok(Self::LLAMA_CPP),
            "mlx-lm" => return Ok(Self::of(Before::Nothing, true)),
            _ => {}
        }
        let (name, last) = match text.strip_suffix(",T") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let is = |(before, own, others): &(Before, &str, &[&str])| {
            let fits = *own == name || others.contains(&name);
            // A tool has its own place for the temperature.
            (fits && !(last && Self::TOOLS.contains(&name))).then_some(*before)
        };
        let found = NAMES.iter().find_map(is);
        found.map(|before| Self::of(before, last)).ok_or_else(|| {
            format!(
                "{text:?} is no order of cuts; give k, p and m in their order, as k,p,m, with \
                     ,T behind them where the temperature comes last; joint; or the tool: {}",
                Self::TOOLS.join(", ")
            )
        })
    }
}

impl TryFrom<String> for CutOrder {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map_err(|error| format!("cut_order: {error}"))
    }
}

impl From<CutOrder> for String {
    fn from(order: CutOrder) -> Self {
        order.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn orders_are_read_and_written() {
        let all: BTreeSet<CutOrder> = CutOrder::all().collect();
        assert_eq!(all.len(), 8);
        for order in all.into_iter().chain([CutOrder::SGLANG]) {
            assert_eq!(order.to_string().parse(), Ok(order));
            let json = serde_json::to_string(&order).unwrap();
            assert_eq!(json, format!("\"{order}\""));
            assert_eq!(serde_json::from_str::<CutOrder>(&json).unwrap(), order);
        }
        let read = |text: &str| text.parse::<CutOrder>().map(|order| order.to_string());
        for (text, order) in [
            ("transformers", "k,p,m"),
            ("sglang-verifier", "k,p,m"),
            ("vllm", "m,k,p"),
            ("k,m,p,T", "m,k,p,T"),
            ("mlx-lm", "joint,T"),
            ("p,m,k,T", "joint,T"),
        ] {
            assert_eq!(read(text).unwrap(), order);
        }
        for text in [
            "",
            "T",
            "k,p",
            "p,k,m,t",
            "sglang,T",
            "vllm,T",
            "Joint",
            "k,p,m,T,T",
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains("transformers, vllm, sglang"), "{message}");
        }
    }

    /// Which orders can differ at all, by what is asked for.
    #[test]
    fn orders_that_keep_the_same_are_one() {
        let number = |asked: [bool; 3], temperature: f64| {
            let all = CutOrder::all().map(|order| order.among(asked, temperature));
            all.collect::<BTreeSet<_>>().len()
        };
        for (asked, at_one, elsewhere) in [
            ([true, false, false], 1, 1),
            ([false, true, false], 1, 2),
            ([false, false, true], 1, 2),
            ([true, true, false], 2, 4),
            ([true, false, true], 1, 2),
            ([false, true, true], 2, 4),
            ([true, true, true], 4, 8),
        ] {
            assert_eq!(number(asked, 1.0), at_one, "{asked:?}");
            assert_eq!(number(asked, 0.7), elsewhere, "{asked:?}");
        }
        assert_eq!(number([true; 3], 0.0), 1);
        let sglang = |min_p| CutOrder::SGLANG.among([true, true, min_p], 1.0).to_string();
        assert_eq!([sglang(false), sglang(true)], ["joint", "k,p,m"]);
    }
}
