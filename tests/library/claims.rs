//! Does the ledger hold what it has to? `specgap check` runs it; see the tests of the
//! program.

use specgap::claims::ledger;

/// Claims that the specification of the ledger names.
const REQUIRED: [(&str, &str); 57] = [
    ("seed-reset-each-round", "refuted"),
    ("calls-by-start", "refuted"),
    ("slot-weights", "holds"),
    ("slot-weights-one-tier", "refuted"),
    ("one-lossy-frontier", "holds"),
    ("lossy-coin", "refuted"),
    ("block-l-convex", "holds"),
    ("single-token-moves", "refuted"),
    ("siblings-carry", "holds"),
    ("otm-membership-equal", "holds"),
    ("otm-subset-equal", "holds"),
    ("dual-integral", "holds"),
    ("qconvex-wr", "holds"),
    ("qconvex-distinct", "holds"),
    ("wo-formula", "refuted"),
    ("qconvex-wo-sequential", "holds"),
    ("supermodular", "holds"),
    ("greedy-optimal", "holds"),
    ("hub-equals-greedy", "holds"),
    ("spectr-upper-tight", "holds"),
    ("kseq-ratio", "holds"),
    ("monotone-n", "holds"),
    ("uniform", "holds"),
    ("bernoulli", "holds"),
    ("wo-beats-wr", "holds"),
    ("spechub-beats-otm", "holds"),
    ("spechub-beats-rrs", "holds"),
    ("spechub-top", "holds"),
    ("spechub-table4", "supported"),
    ("gbv-k1", "holds"),
    ("gbv-upper", "refuted"),
    ("gbv-cic-trivial", "holds"),
    ("gbv-attains", "refuted"),
    ("gbv-lossless", "refuted"),
    ("khisti-n2", "holds"),
    ("token-block-greedy", "holds"),
    ("replay", "holds"),
    ("rollout-drafts", "holds"),
    ("oracle-stochastic", "holds"),
    ("specdec-threshold-form", "refuted"),
    ("entropy-lower-bound", "refuted"),
    ("prune-after-draw", "refuted"),
    ("lossy-frontier", "holds"),
    ("alpha-not-a-text-bound", "refuted"),
    ("level-optimal-iid", "holds"),
    ("level-optimal-strata", "holds"),
    ("rejection-three-quarters", "holds"),
    ("rrs-hockey-stick", "holds"),
    ("stratified-dominates-iid", "holds"),
    ("deville-dominates", "holds"),
    ("pps-ceiling", "holds"),
    ("certain-not-monotone", "refuted"),
    ("strata-not-undominated", "refuted"),
    ("thresholds-not-optimal", "refuted"),
    ("fixed-levels-do-not-converge", "refuted"),
    ("madow-not-dominating", "refuted"),
    ("level-not-universal", "refuted"),
];

#[test]
fn every_required_claim_has_its_verdict() {
    for (id, verdict) in REQUIRED {
        let claim = ledger().into_iter().find(|claim| claim.id == id);
        assert_eq!(
            claim.map(|claim| claim.expected.as_str()),
            Some(verdict),
            "{id}"
        );
    }
}
