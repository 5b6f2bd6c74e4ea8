//! Do all commands read all names of a rule?

use specgap::rule::RULES;

/// Every command reads every name of a rule that it has.
#[test]
fn every_vocabulary_reads_every_name() {
    for rule in RULES {
        for name in rule.aliases.iter().chain([&rule.name]) {
            let own = |found: Option<&str>| assert!(found.is_none_or(|found| found == rule.name));
            own((name.parse::<specgap::verifier::VerifierName>().ok()).map(|rule| rule.as_str()));
            own((name.parse::<specgap::block::BlockRule>().ok()).map(|rule| rule.as_str()));
            own((name.parse::<specgap::rounds::ChainRule>().ok()).map(|rule| rule.as_str()));
            let audited = name
                .parse::<specgap::audit::Rule>()
                .map(|rule| rule.to_string());
            assert_eq!(audited.is_ok(), rule.audited && rule.name != "threshold:A");
            own(audited.ok().as_deref());
        }
    }
    for name in ["token", "single", "chain"] {
        assert_eq!(name.parse(), Ok(specgap::verifier::VerifierName::TOKEN));
        assert_eq!(name.parse(), Ok(specgap::block::BlockRule::TOKEN));
        assert_eq!(name.parse(), Ok(specgap::rounds::ChainRule::TOKEN));
    }
}
