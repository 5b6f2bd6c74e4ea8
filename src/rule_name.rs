//! The names of verification rules that have several.
//!
//! Papers and engines call one rule by several names, and so did the commands. Every command
//! reads all of them.

/// A rule each: the name that the field uses, and the others.
const NAMES: [(&str, &[&str]); 2] = [
    // min(1, p/q) (Leviathan et al. 2023, Algorithm 1); "token verification" since Sun et al. 2024.
    ("token", &["single", "chain"]),
    // A token of p is drawn first, and the draft that is this token is accepted.
    ("exact-match", &["naive", "target-only", "strict"]),
];

/// The name that the field uses; the name itself where a rule has no other.
fn canonical(name: &str) -> &str {
    let known = NAMES
        .iter()
        .find(|(own, others)| *own == name || others.contains(&name));
    known.map_or(name, |(own, _)| own)
}

/// Whether both are names of one rule.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    canonical(one) == canonical(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_rule_each() {
        let mut all: Vec<&str> = NAMES.iter().map(|(own, _)| *own).collect();
        all.extend(NAMES.iter().flat_map(|(_, others)| *others));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(is_same("chain", "single") && is_same("token", "token"));
        assert!(!is_same("chain", "naive") && !is_same("rrs", "rrs-wo"));
        assert!(is_same("rrs", "rrs"));
    }

    /// Each vocabulary reads the names of the others, whichever it writes.
    #[test]
    fn every_vocabulary_reads_every_name() {
        for name in ["token", "single", "chain"] {
            assert_eq!(name.parse(), Ok(crate::verifier::VerifierName::SINGLE));
            assert_eq!(name.parse(), Ok(crate::block::BlockVerifierName::Token));
            assert_eq!(name.parse(), Ok(crate::rounds::ChainVerifier::Token));
            assert_eq!(name.parse(), Ok(crate::audit::Rule::Single));
            assert_eq!(name.parse(), Ok(crate::conformance::Rule::Chain));
        }
        for name in ["exact-match", "naive", "target-only", "strict"] {
            assert_eq!(name.parse(), Ok(crate::verifier::VerifierName::NAIVE));
            assert_eq!(name.parse(), Ok(crate::audit::Rule::ExactMatch));
            assert_eq!(name.parse(), Ok(crate::conformance::Rule::TargetOnly));
        }
    }

    #[cfg(feature = "onnx")]
    #[test]
    fn decode_reads_every_name() {
        use clap::ValueEnum;
        let rule = crate::capture::Rule::Token;
        let written = rule.to_possible_value().unwrap();
        let names: Vec<&str> = written.get_name_and_aliases().collect();
        let (own, others) = NAMES[0];
        assert_eq!(names, [&[own], others].concat());
    }
}
