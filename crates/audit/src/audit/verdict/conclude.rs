//! From what suspects have won to a verdict, its cause, and what would have been found.

use crate::audit::beside::{Cause, Surprise};
use crate::audit::data::{
    Capital, Conclusion, Excluded, FlaggedGroup, PartReport, Settings, Suspect as Listed,
};
use crate::audit::evidence::bets::log_sum;
use crate::audit::evidence::book::Part;
use crate::audit::evidence::requests::Family as Grouping;
use crate::audit::model::rule::Rule;
use crate::audit::suspects::capital::{Logs, SHARES, Won, best, of_shares};
use crate::audit::suspects::family::{BANS, Correct, Keep, Law, Place, Suspect, short};
use crate::audit::suspects::sequence::{Drawn, NOISES, ORDERS, REUSED, Threshold};
use crate::audit::suspects::target::Change;
use crate::audit::verdict::capital::e_bh;
use crate::audit::verdict::laws::Found;
use crate::audit::verdict::parts::positions_for;
use serde_json::{Map, Value, json};
use specgap_core::rule::Drafts;
use std::f64::consts::LN_10;

/// A cause is named if its likelihood is this much above the next, in nats.
pub(crate) const NAMED: f64 = 7.0;

/// Suspects beside those of the table, for their weight in the mixture.
const BESIDE: usize = 10;

/// What comes out has to speak so much, in nats, for a law that moves it: acceptance alone may fit a law that
/// outputs refute.
const SPOKEN: f64 = 1.0;

/// A lossless law at fewer of the steps says nothing of the others.
const MOSTLY: f64 = 0.5;

/// How far the surprise of a text may be from its entropy.
const SURPRISED: f64 = 5.0;

/// ln of an e-value above which nothing is as claimed, refuted or not: where the claim holds either
/// capital gets there with a probability of 1e-3 at most.
pub(crate) const NEAR: f64 = 3.0 * LN_10;

/// Tokens of a text, on average, from which on laws of shared numbers tell what texts share.
const SHORT_TEXT: usize = 6;

/// The share of a log that has to be looked at.
const LOOKED: f64 = 0.95;

/// A law, and what speaks for it.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub name: &'static str,
    pub law: Option<Law>,
    pub share: f64,
    /// ln of its likelihood over the claim's.
    pub log: f64,
    /// The same without what is paid for noise.
    pub unpaid: f64,
    fit: Map<String, Value>,
    words: String,
    cure: String,
    pub lossless: bool,
    pub tv: Option<f64>,
    /// ln of its likelihood over the claim's, of what came out alone, where it says what does.
    pub outputs: Option<f64>,
}

/// What all of it comes to.
pub(crate) struct Weighed<'a> {
    pub found: &'a Found,
    pub rule: Rule,
    alpha: f64,
    /// By family: ln of a suspect's weight, without that of its shares.
    weights: Vec<f64>,
    /// ln of e-values: of the rule and of outputs, beyond what honest engines may do.
    pub of_rule: f64,
    pub of_outputs: f64,
    /// The larger of the two if no numbers come again but where it is said.
    but_for_numbers: f64,
    /// ln of what numbers that come again, and noise, explain of the rule.
    by_numbers: f64,
    /// One a name, strongest first.
    pub candidates: Vec<Candidate>,
}

impl<'a> Weighed<'a> {
    pub(crate) fn new(found: &'a Found, rule: Rule, alpha: f64) -> Self {
        let families = &found.families;
        let mut sizes = vec![0usize; families.names.len()];
        for suspect in &families.suspects {
            if let Some(size) = sizes.get_mut(suspect.family) {
                *size += 1;
            }
        }
        let mut weighed = Self {
            found,
            rule,
            alpha,
            weights: Vec::new(),
            of_rule: 0.0,
            of_outputs: 0.0,
            but_for_numbers: 0.0,
            by_numbers: 0.0,
            candidates: Vec::new(),
        };
        let each = -weighed.families().ln();
        let weight = |size: &usize| each - (*size.max(&1) as f64).ln();
        weighed.weights = sizes.iter().map(weight).collect();
        let sequence = &found.sequence;
        let texts = found.texts_share().0;
        let rounds = sequence.rounds.largest().0;
        let texts = if found.shares { texts } else { 0.0 };
        let noise = sequence.noise.iter().copied().fold(0.0, f64::max);
        let noise = if found.noises { noise } else { 0.0 };
        let same = weighed.say_the_same();
        let both = |same: usize| {
            let of_rule = weighed.mixed(|won| won.rule, &weighed.beside(false), same);
            let of_outputs = weighed.mixed(|won| won.output, &weighed.beside(true), same);
            [of_rule, of_outputs]
        };
        let [of_rule, of_outputs] = both(same);
        let is_said = found.shares_said();
        let said = if is_said { texts } else { 0.0 };
        let own = match is_said || same == 1 {
            true => [of_rule, of_outputs],
            false => both(1),
        };
        weighed.of_outputs = of_outputs - texts;
        weighed.by_numbers = noise.max(texts.max(rounds)).max(texts + rounds);
        weighed.of_rule = of_rule - weighed.by_numbers;
        // Outputs that a claim lets differ from p show no numbers.
        let of_outputs = if rule.is_lossless() { own[1] } else { 0.0 };
        weighed.but_for_numbers = (own[0] - noise.max(said)).max(of_outputs - said);
        weighed.candidates = weighed.all();
        weighed
    }

    /// Takes a rule under which nothing is refuted, with ln of its likelihood over the claim's, for a law that
    /// explains the log if it `may`. Returns it where nothing lossy is ahead of it by as much as a cause has to be.
    pub(crate) fn take(&mut self, rule: Rule, log: f64, may: bool) -> Option<Rule> {
        let name = if rule == Rule::BLOCK {
            "block"
        } else {
            "token"
        };
        let cure = format!("nothing is lost: name the rule {name}");
        let is_behind = |one: &Candidate| !one.lossless && one.stands() && one.log >= log + NAMED;
        let rule = (!self.candidates.iter().any(is_behind)).then_some(rule);
        if let Some(rule) = rule.filter(|_| may) {
            let words = rule.words();
            self.candidates.push(Candidate {
                lossless: true,
                ..Candidate::new(name, log, words, cure)
            });
            self.candidates.sort_by(|a, b| b.log.total_cmp(&a.log));
        }
        rule
    }

    /// Tells whether nothing speaks against the claim: a capital of less than e.
    pub(crate) fn is_calm(&self) -> bool {
        self.of_rule.max(self.of_outputs) < 1.0
    }

    /// Takes a law whose sizes were looked at more closely as it was found there.
    pub(crate) fn sharpen(&mut self, finer: &Found) {
        for one in Weighed::new(finer, self.rule, self.alpha).candidates {
            let is_less = |own: &Candidate| own.name == one.name && own.log > one.log;
            if one.name.ends_with("-cut") && !self.candidates.iter().any(is_less) {
                self.candidates.retain(|own| own.name != one.name);
                self.candidates.push(one);
            }
        }
        self.candidates.sort_by(|a, b| b.log.total_cmp(&a.log));
    }

    /// Returns the logarithm that a capital needs: half of the level each.
    pub(crate) fn needed(&self) -> f64 {
        (2.0 / self.alpha).ln()
    }

    fn families(&self) -> f64 {
        (self.found.families.names.len() + BESIDE) as f64
    }

    /// ln of a suspect's weight, without that of its shares.
    fn weight(&self, family: usize) -> f64 {
        let own = self.weights.get(family).copied();
        own.unwrap_or(f64::NEG_INFINITY)
    }

    /// ln of what stands beside the table of suspects, each with its weight.
    fn beside(&self, outputs: bool) -> Vec<f64> {
        let sequence = &self.found.sequence;
        let each = -self.families().ln();
        let tokens = self.found.never.len().max(1) as f64;
        let never = log_sum(self.found.never.iter().copied()) - tokens.ln();
        let is_text = self.rule == Rule::TEXT;
        let mut all = Vec::new();
        if outputs || is_text {
            all.extend([sequence.ranks[0].log, never, sequence.pairs.log()]);
        }
        if !outputs {
            all.extend(sequence.thresholds.map(|one| one.log));
            all.push(sequence.ranks[1].log);
            all.push(sequence.anyway.log());
            // All together weigh as two.
            let half = REUSED.len() * ORDERS.len() / 2;
            all.push(log_sum(sequence.reused()) - (half as f64).ln());
        }
        all.into_iter().map(|log| log + each).collect()
    }

    /// Each suspect with what it has won.
    fn suspects(&self) -> impl Iterator<Item = (&'a Suspect, &'a Won)> {
        let suspects = self.found.families.suspects.iter();
        suspects.zip(&self.found.tally.won)
    }

    /// Positions that were looked at.
    fn looked(&self) -> f64 {
        self.found.looked.max(1) as f64
    }

    /// How many short texts are said to draw with the same numbers, or may where nothing says: they are too short to
    /// show it, and one of so many counts.
    fn say_the_same(&self) -> usize {
        let [texts, together] = self.found.texts;
        match self.found.looked < SHORT_TEXT * texts {
            true if self.found.may_share_unsaid() => texts,
            true => together.max(1),
            false => 1,
        }
    }

    /// Tells whether texts share numbers, though nothing says so.
    fn seem_to_share(&self) -> bool {
        self.found.may_share_unsaid() && self.found.texts_shared() >= self.needed()
    }

    /// ln of the capital of all suspects and of what stands beside them. Of texts that say the same the
    /// geometric mean of their capitals: no more than the mean, whatever they share. What was learnt along the
    /// log is none of one text.
    fn mixed(&self, of: impl Fn(&Won) -> Logs, beside: &[f64], same: usize) -> f64 {
        let learns = same == 1 && !self.seem_to_share();
        let is_learnt = |suspect: &Suspect| {
            use Law::{Draft, OtherDraft, Target};
            let (Target(change, _) | Draft(change) | OtherDraft(change)) = suspect.law else {
                return false;
            };
            matches!(change, Change::Learnt(_) | Change::Unseen(_))
        };
        let own = self.suspects();
        let own = own.filter(|(suspect, _)| learns || !is_learnt(suspect));
        let own = own.map(|(suspect, won)| {
            let logs = of(won).map(|log| log / same as f64);
            of_shares(&logs) + self.weight(suspect.family)
        });
        let own: Vec<f64> = own.collect();
        let beside = beside.iter().filter(|_| learns);
        log_sum(own.iter().chain(beside).copied())
    }

    fn all(&self) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = Vec::new();
        for (suspect, won) in self.suspects() {
            let logs = won.logs();
            let law = suspect.law;
            let (most, its_share) = best(logs);
            // All steps, if a share of them is not better by far.
            let [whole, strongest] = [(logs[0], 1.0), (most, its_share)];
            let is_simple = won.unpaid(whole) > won.unpaid(strongest) - NAMED && its_share < 1.0;
            for (log, share) in is_simple.then_some(whole).into_iter().chain([strongest]) {
                let mut fit = law.fit();
                let mut words = law.words();
                if share < 1.0 {
                    fit.insert("share".to_owned(), json!(share));
                    words = format!("{words}, at about {}% of the steps", short(100.0 * share));
                }
                if let Law::Target(Change::Unseen(least), _) = law {
                    let (tokens, expected) = self.banned(least);
                    words = banned_in_words(&tokens, expected);
                    fit = banned_fit(&tokens);
                }
                let mut name = match self.found.families.names.get(suspect.family).copied() {
                    Some("accepts-everything") if share < 1.0 => "accepts-more",
                    name => name.unwrap_or_default(),
                };
                let mut cure = law.cure();
                if let Some((token, expected)) = self.banned_alone(law).filter(|_| share == 1.0) {
                    (name, cure) = ("token-banned", BANS);
                    (words, fit) = (banned_in_words(&[token], expected), banned_fit(&[token]));
                }
                let knows_outputs = won.apart != [0.0; 2];
                all.push(Candidate {
                    name,
                    law: Some(law),
                    share,
                    log,
                    unpaid: won.unpaid((log, share)),
                    fit,
                    words,
                    cure: cure.to_owned(),
                    // A draft has one q, or what is tested is not known.
                    lossless: law.is_lossless(self.rule)
                        && !(share < 1.0 && matches!(law, Law::OtherDraft(_))),
                    tv: knows_outputs.then_some(won.apart[1] / self.looked()),
                    outputs: slot_of(share)
                        .map(|slot| won.output[slot])
                        .filter(|_| knows_outputs),
                });
            }
        }
        all.extend(self.learnt());
        all.extend(self.keeps_anyway());
        if self.found.noises {
            let noise = NOISES.iter().zip(self.found.sequence.noise);
            let of = "rows are those of another pass, with noise of about";
            let words = |sigma: &f64| format!("{of} {sigma} on each logit");
            let cure = |sigma: &f64| format!("pass --noise {sigma}, or log the engine's own rows");
            all.extend(noise.map(|(sigma, log)| Candidate {
                fit: json_map([("noise", json!(sigma))]),
                lossless: true,
                ..Candidate::new("noise", log, words(sigma), cure(sigma))
            }));
        }
        all.sort_by(|a, b| b.log.total_cmp(&a.log));
        let mut strongest: Vec<Candidate> = Vec::new();
        for one in all.into_iter().filter(|one| one.log > 0.0) {
            match strongest.iter_mut().find(|own| own.name == one.name) {
                None => strongest.push(one),
                // Of one name all steps, if a share of them is not better by far.
                Some(own)
                    if own.share < 1.0 && one.share == 1.0 && one.unpaid > own.unpaid - NAMED =>
                {
                    *own = Candidate {
                        log: own.log,
                        ..one
                    };
                }
                Some(_) => {}
            }
        }
        let mut all = strongest;
        let of = |name: &str| all.iter().find(|one| one.name == name).map(|one| one.log);
        let both = |one: &str, other: &str| of(one).zip(of(other));
        // Few drafts that the rule refuses do not tell all of them from nearly all.
        let no_more =
            both("accepts-everything", "accepts-more").is_some_and(|(all, more)| all >= more);
        // A cut that is not made and another order may leave the same tokens.
        let is_order = both("cut-order", "cut-missing").is_some_and(|(a, b)| (a - b).abs() < 0.01);
        all.retain(|one| match one.name {
            "accepts-more" => !no_more,
            "cut-missing" => !is_order,
            _ => true,
        });
        all
    }

    /// Tokens that should have come so often and never did, the likeliest first, and how often all of
    /// them should.
    fn banned(&self, least: f64) -> (Vec<usize>, f64) {
        let never = self.found.never.iter().copied().enumerate();
        let mut all: Vec<(usize, f64)> = never.filter(|(_, log)| *log >= least).collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        (
            all.iter().map(|one| one.0).collect(),
            all.iter().map(|one| one.1).sum(),
        )
    }

    /// The token that a banned range of ids holds, if it is one, and how often it should have come.
    fn banned_alone(&self, law: Law) -> Option<(usize, f64)> {
        let Law::Target(Change::Range { of, at, factor }, Place::Everywhere) = law else {
            return None;
        };
        let (of, at) = (usize::from(of), usize::from(at));
        let [from, to] = [at, at + 1].map(|part| part * self.found.never.len() / of);
        let expected = self.found.never.get(from).copied();
        let expected = expected.filter(|one| one.is_finite());
        let is_one = factor == 0.0 && to == from + 1;
        expected.filter(|_| is_one).map(|expected| (from, expected))
    }

    /// Drafts that the rule refuses and the engine keeps, at the share that fits best.
    fn keeps_anyway(&self) -> Option<Candidate> {
        let law = Law::Decide(Keep::All, Correct::Claimed);
        let (_, won) = self.suspects().find(|(suspect, _)| suspect.law == law)?;
        let (share, [low, high], log) = self.found.sequence.anyway.best();
        let [kept, least, most] = [share, low, high].map(|share| short(100.0 * share));
        let words =
            format!("of the drafts that the rule refuses {kept}% are kept ({least} to {most})");
        let own = law.cure();
        let cure = format!(
            "{own}, or for a weight of q in the p that verifies drafts (transformers: assistant_ensemble_weight), which is the same law"
        );
        Some(Candidate {
            law: Some(law),
            share,
            fit: json_map([("share", json!(share)), ("share_range", json!([low, high]))]),
            tv: Some(share * won.apart[1] / self.looked()),
            ..Candidate::new("accepts-more", log, words, cure)
        })
    }

    /// Laws that were learnt along the log.
    fn learnt(&self) -> Vec<Candidate> {
        let sequence = &self.found.sequence;
        let mut all = Vec::new();
        for (threshold, of) in sequence.thresholds.iter().zip(["p/q", "p", "p exp(H)"]) {
            if threshold.is_one() {
                all.push(of_threshold(threshold, of));
            }
        }
        for (one, logs) in REUSED.iter().zip(sequence.reused) {
            for (log, order) in logs.into_iter().zip(ORDERS) {
                let cure = "draw a new random number for each draft, each coin and each token";
                all.push(Candidate {
                    fit: json_map([("order", json!(order))]),
                    ..Candidate::new(one.name, log, one.words, cure)
                });
            }
        }
        let never = self.found.never.iter().copied().enumerate();
        if let Some((token, expected)) = never.max_by(|a, b| a.1.total_cmp(&b.1)) {
            let words = banned_in_words(&[token], expected);
            all.push(Candidate {
                fit: banned_fit(&[token]),
                tv: Some(expected / self.looked()),
                ..Candidate::new("token-banned", expected, words, BANS)
            });
        }
        let (pairs, expected) = sequence.pairs.banned();
        let words =
            format!("{pairs} pairs of tokens never come, where about {expected:.0} were expected");
        let cure = Change::Again(0.0).cure();
        all.push(Candidate {
            fit: json_map([("never", json!(pairs))]),
            tv: Some(expected / self.looked()),
            ..Candidate::new("pair-bias", sequence.pairs.log(), words, cure)
        });
        let [outputs, drafts] = &sequence.ranks;
        let words = "tokens fall elsewhere in the row's own order than draws from it do, in no way that is known";
        let cure = "compare rows with the text: another prefix, another model, another position";
        all.push(Candidate::new(
            "outputs-unlike-their-rows",
            outputs.log,
            words,
            cure,
        ));
        let words = "drafts fall elsewhere in the draft's row than draws from it do: the q of the log is not the q that drafted";
        let cure = "log the row that the draft was drawn from, of the same prefix; what was verified with another q is not told apart";
        all.push(Candidate::new(
            "drafts-unlike-their-rows",
            drafts.log,
            words,
            cure,
        ));
        let (rounds, kind) = sequence.rounds.largest();
        let words = format!("rounds of one text draw with the same random numbers ({kind})");
        let cure = "seed the generator once a request, and not once a round";
        all.push(Candidate {
            fit: json_map([("numbers", json!(kind))]),
            ..Candidate::new("seed-reset-each-round", rounds, words, cure)
        });
        let (texts, kind) = self.found.texts_share();
        let words = format!(
            "requests share random numbers: the same step of each text draws with one number ({kind}). Each text by itself follows its law"
        );
        let cure = "give each request a generator, or a seed, of its own; if the requests were sent with one seed, log seed [N] or say --seeds shared";
        all.push(Candidate {
            fit: json_map([("numbers", json!(kind))]),
            lossless: true,
            ..Candidate::new("shared-stream", texts, words, cure)
        });
        all
    }

    /// The strongest, and by how much it beats all others. Where the law of drafts is refuted by
    /// itself, acceptance and corrections rest on it: only what changes drafts explains it, and
    /// nothing does if what leaves them as they are explains far more of refuted outputs. No lossless
    /// law explains these.
    pub(crate) fn leader(&self) -> Option<(&Candidate, f64)> {
        let (drafts, outputs) = (self.drafts_fall(), self.outputs_fall());
        let able = self.candidates.iter();
        let able = able.filter(|one| one.stands() && (!one.lossless || self.keeps_so(one)));
        let loses = |one: &Candidate| one.law.is_none_or(|law| !law.is_lossless(self.rule));
        let able = able.filter(|one| !outputs || loses(one));
        let mut all = able.clone();
        let mut able = able.filter(|one| !drafts || one.changes_drafts());
        let first = able.next()?;
        let most = all.next().map_or(0.0, |one| one.log);
        if outputs && most >= first.log + self.needed() {
            return None;
        }
        let next = able.next().map_or(0.0, |one| one.log);
        Some((first, first.log - next.max(0.0)))
    }

    /// Tells whether what comes out does not follow p, of a rule that says it does.
    pub(crate) fn outputs_fall(&self) -> bool {
        self.of_outputs >= self.needed() && self.rule.is_lossless()
    }

    /// Tells whether drafts are no draws of the law that is claimed of them.
    pub(crate) fn drafts_fall(&self) -> bool {
        self.log_of(0) >= self.needed()
    }

    fn of(&self, name: &str) -> f64 {
        let found = self.candidates.iter().find(|one| one.name == name);
        found.map_or(0.0, |one| one.log)
    }

    /// Tells whether the law would be refuted, were it known that numbers do not come again.
    pub(crate) fn hangs_on_numbers(&self) -> bool {
        self.but_for_numbers >= self.needed() || self.seem_to_share()
    }

    /// Numbers that come again, in rounds of a text or in texts, if laws do not explain them.
    pub(crate) fn numbers(&self) -> Option<&'static str> {
        let sequence = &self.found.sequence;
        let rounds = &sequence.rounds;
        let rounds = [rounds.mixture(), rounds.largest().0];
        let texts = [self.found.texts_shared(), self.found.texts_share().0];
        let both = [("seed-reset-each-round", rounds), ("shared-stream", texts)];
        let laws = self.candidates.iter();
        let laws = laws.filter(|one| both.iter().all(|(name, _)| *name != one.name));
        let laws = laws.map(|one| one.log).fold(0.0, f64::max);
        let both = both.map(|(name, [mixed, largest])| (name, mixed.min(largest)));
        // That requests share numbers is no finding where it is said.
        let mut fired: Vec<(&str, f64)> = both
            .into_iter()
            .filter(|(name, _)| *name != "shared-stream" || !self.found.shares_said())
            .filter(|_| self.say_the_same() == 1 || self.seem_to_share())
            .filter(|(name, log)| *log >= self.needed() && self.of(name) >= laws + self.needed())
            .collect();
        fired.sort_by(|a, b| b.1.total_cmp(&a.1));
        fired.first().map(|one| one.0)
    }

    /// Lists what has evidence, for reports.
    pub(crate) fn listed(&self) -> Vec<Listed> {
        let strong = self.candidates.iter().take(6);
        let strong = strong.filter(|one| one.log > 2.0 * LN_10);
        let listed = strong.map(|one| Listed {
            name: one.name.to_owned(),
            words: one.words.clone(),
            cure: one.cure.clone(),
            log10_e_value: one.log / LN_10,
            is_bug: one.law.is_some(),
        });
        listed.collect()
    }

    pub(crate) fn capital(&self) -> Capital {
        let sequence = &self.found.sequence;
        Capital {
            log10_rule: self.of_rule / LN_10,
            log10_outputs: self.of_outputs / LN_10,
            log10_needed: self.needed() / LN_10,
            log10_rounds_share: sequence.rounds.mixture() / LN_10,
            log10_texts_share: self.found.texts_shared() / LN_10,
        }
    }

    /// ln of the e-value of a part of the round: drafts, acceptance, corrections, outputs.
    fn log_of(&self, part: usize) -> f64 {
        let sequence = &self.found.sequence;
        let thresholds = sequence.thresholds.map(|one| one.log);
        let (beside, drawn): (&[f64], _) = match part {
            0 => (&[sequence.ranks[1].log], Drawn::Draft),
            1 => (&thresholds, Drawn::Coin),
            2 => (&[], Drawn::Token),
            _ => return self.of_outputs,
        };
        let reused = sequence.reused_for(drawn);
        let mixed = log_sum(reused.iter().copied()) - (reused.len().max(1) as f64).ln();
        let beside = [beside, &[mixed]].concat();
        let each = self.families().ln();
        let beside: Vec<f64> = beside.iter().map(|log| log - each).collect();
        let of = |won: &Won| {
            let mut logs = won.parts[part];
            if part == 2 {
                for (log, more) in logs.iter_mut().zip(won.parts[3]) {
                    *log += more;
                }
            }
            logs
        };
        self.mixed(of, &beside, self.say_the_same()) - self.by_numbers
    }

    /// The parts of a round, each by itself: where what was refuted shows.
    pub(crate) fn parts(&self) -> Vec<PartReport> {
        let steps = self.found.tally.steps;
        let counts = [steps[0], steps[1], steps[2] + steps[3], steps[4]];
        let logs = [0, 1, 2, 3].map(|part| self.log_of(part));
        let drafts_fall = logs[0] >= self.needed();
        // The level is the whole rule's: no part of it falls alone.
        let falls = self.of_rule.max(self.of_outputs) >= self.needed();
        let report = |part: Part| {
            let at = part.index();
            let (count, log) = (counts[at], logs[at]);
            let rests = drafts_fall && matches!(part, Part::Acceptance | Part::Correction);
            let reason = match (part, count) {
                (Part::DraftLaw, _) if self.rule.drafts() == Drafts::Any => Some(format!(
                    "{} claims nothing of how drafts are drawn",
                    self.rule
                )),
                (_, 0) => Some("the log has no step of this kind".to_owned()),
                (Part::TargetLaw, _) if !self.rule.is_lossless() => Some(format!(
                    "{} does not claim that what comes out follows p; --rule text asks that",
                    self.rule
                )),
                _ if rests => {
                    Some("it rests on the law of the drafts, which is refuted".to_owned())
                }
                _ => None,
            };
            PartReport::new(part, count, log, falls && log >= self.needed(), reason)
        };
        Part::ALL.map(report).into()
    }

    /// Groups of steps in which the rule fails by themselves.
    pub(crate) fn groups(&self) -> Vec<FlaggedGroup> {
        let tally = &self.found.tally;
        let mut all = Vec::new();
        for family in Grouping::ALL {
            let of: Vec<_> = (tally.groups.iter())
                .filter(|((one, _), _)| *one == family)
                .map(|((_, group), (steps, logs))| {
                    let all = self.found.families.suspects.iter().zip(logs);
                    let all = all.map(|(suspect, log)| log + self.weight(suspect.family));
                    let all: Vec<f64> = all.collect();
                    (*group, *steps, log_sum(all.iter().copied()))
                })
                .collect();
            if of.len() < 2 {
                continue;
            }
            let logs: Vec<f64> = of.iter().map(|one| one.2).collect();
            all.extend(e_bh(&logs, self.alpha).into_iter().filter_map(|at| {
                let &(group, steps, log) = of.get(at)?;
                Some(FlaggedGroup {
                    family: family.as_str().to_owned(),
                    group,
                    steps,
                    log10_e_value: log / LN_10,
                })
            }));
        }
        all
    }

    /// A suspect, how far it moves outputs, and how many tokens show it.
    fn reach(&self, suspect: &Suspect, won: &Won, have: u64) -> Option<Excluded> {
        let n = self.looked();
        let wanted = self.needed() - self.weight(suspect.family) - SHARES[0].1.ln();
        let positions = |[sum, squares]: [f64; 2]| positions_for(sum / n, squares / n, wanted);
        let needs = won.growth.map(positions);
        let excluded = excluded_outcomes(won.mass, n);
        let first = needs.into_iter().flatten().chain(excluded).min();
        let tv = won.apart[0] / n;
        // Capital grows by 2 TV^2 a step at least (Pinsker), if the sample does not tell.
        let least = (wanted / (tv * tv)).ceil();
        let tokens = first.or((tv > 1e-3).then_some(least as u64));
        let name = self.found.families.names.get(suspect.family).copied()?;
        Some(Excluded {
            name: name.to_owned(),
            fit: suspect.law.fit(),
            words: suspect.law.words(),
            tv,
            tokens,
            found: tokens.is_some_and(|tokens| tokens <= have),
        })
    }

    /// Lists by cause what would have been found and what would not; and the tokens that would do, if any number
    /// does. Of a departure all but what is [`Found::hidden`] shows.
    pub(crate) fn excluded(&self, exclude: f64) -> (Vec<Excluded>, Option<u64>) {
        let exclude = exclude - self.found.hidden();
        let have = (self.found.looked as f64 * self.found.alone).floor() as u64;
        let all = self.suspects();
        let all = all.filter_map(|(suspect, won)| self.reach(suspect, won, have));
        let all: Vec<Excluded> = all.collect();
        let mut names: Vec<&str> = Vec::new();
        let mut listed = Vec::new();
        for each in &all {
            if names.contains(&each.name.as_str()) {
                continue;
            }
            names.push(&each.name);
            let own = |found: bool| {
                let own = all.iter().filter(move |one| one.found == found);
                own.filter(|other| other.name == each.name && other.tv > 1e-4)
            };
            let by_size = |a: &&Excluded, b: &&Excluded| a.tv.total_cmp(&b.tv);
            listed.extend(own(true).min_by(by_size).cloned());
            listed.extend(own(false).max_by(by_size).cloned());
        }
        if exclude <= 0.0 {
            return (listed, None);
        }
        let open = all.iter().filter(|one| one.tv >= exclude && !one.found);
        let wanted = open.map(|one| one.tokens.unwrap_or(0)).max();
        let enough = Some(self.learns(exclude)).filter(|enough| *enough > have);
        let wanted = wanted.max(enough);
        (listed, wanted.map(|tokens| tokens.saturating_sub(have)))
    }

    /// Returns how many tokens show that some are never drawn, of a share e of what should come, if nobody knows
    /// which: a token earns -ln(1 - e), and to learn a law of k tokens costs k/2 ln N ([Krichevsky and
    /// Trofimov 1981](https://doi.org/10.1109/TIT.1981.1056331)). k is e^H, of the mean entropy of rows.
    fn learns(&self, exclude: f64) -> u64 {
        let choices = self.entropy().exp();
        let earned = -(-exclude.min(0.999)).ln_1p();
        let mut tokens = 1.0f64;
        // The sum grows slower than its argument: it is the least from below.
        for _ in 0..64 {
            tokens = ((0.5 * choices * tokens.ln() + self.needed()) / earned).max(1.0);
        }
        tokens.ceil() as u64
    }

    /// The mean entropy of rows.
    fn entropy(&self) -> f64 {
        let entropy: f64 = self.found.surprises.iter().map(|one| one.entropy).sum();
        entropy / self.looked()
    }

    /// The share of what should come from which on unknown pairs of tokens that are never drawn would have shown:
    /// likewise, of as many pairs as their entropy says.
    pub(crate) fn pairs_excluded(&self) -> f64 {
        if self.found.sequence.pairs.is_empty() {
            return 1.0;
        }
        let pairs = (self.entropy() + self.found.sequence.pairs.entropy()).exp();
        let tokens = (self.looked() * self.found.alone).max(1.0);
        let needed = 0.5 * pairs * tokens.ln() + self.needed();
        -(-needed / tokens).exp_m1()
    }

    /// Returns the law of a candidate's name that fits best at all steps, where the candidate is one at some.
    pub(crate) fn whole(&self, one: &Candidate) -> Option<Candidate> {
        one.law
            .filter(|law| one.share < 1.0 && !law.around().is_empty())?;
        let names = &self.found.families.names;
        let own = self.suspects();
        let own = own.filter(|(suspect, _)| names.get(suspect.family) == Some(&one.name));
        let (suspect, won) = own.max_by(|a, b| a.1.logs()[0].total_cmp(&b.1.logs()[0]))?;
        Some(Candidate {
            law: Some(suspect.law),
            share: 1.0,
            fit: suspect.law.fit(),
            tv: one.tv.map(|_| won.apart[1] / self.looked()),
            ..one.clone()
        })
    }

    /// The share of drafts that were kept.
    pub(crate) fn kept_share(&self) -> f64 {
        let [_, tested, refused, ..] = self.found.tally.steps;
        1.0 - refused as f64 / (tested.max(1)) as f64
    }

    /// A candidate as a cause.
    pub(crate) fn cause(&self, one: &Candidate, margin: f64) -> Cause {
        Cause {
            name: one.name.to_owned(),
            fit: one.fit.clone(),
            log_ratio_to_next: margin,
            words: one.words.clone(),
            cure: one.cure.clone(),
            tv: one.tv,
        }
    }

    /// Tells whether drafts were kept as a lossless law says, wherever that is compared.
    fn keeps_so(&self, one: &Candidate) -> bool {
        let law = match one.law {
            Some(Law::Decide(Keep::Target, _)) => 1,
            Some(Law::Decide(Keep::None, _)) => 2,
            Some(Law::Decide(Keep::Ratio, _)) => 3,
            Some(Law::Shares(numbers)) => 4 + numbers as usize,
            _ => return true,
        };
        self.explains(one) && self.found.sequence.replaced.fits(law, one.share)
    }

    /// Tells whether drafts were kept as often as a law says, if it is one of the table.
    pub(crate) fn explains(&self, one: &Candidate) -> bool {
        let mut all = self
            .suspects()
            .filter(|(suspect, _)| Some(suspect.law) == one.law);
        all.next()
            .is_none_or(|(_, won)| self.found.tally.fits(won, one.share))
    }

    /// Returns the logarithm of the strongest lossless law, whether drafts are kept as it says or not: where it
    /// explains more than what is lossy, that a lossy law moves outputs says nothing of these.
    fn nearest_lossless(&self) -> f64 {
        let mut laws = self.candidates.iter();
        let law = laws.find(|one| one.lossless && one.law.is_some());
        law.map_or(0.0, |one| one.log)
    }

    /// Returns the strongest lossless law, and by how much its logarithm beats what is lossy.
    pub(crate) fn is_lossless(&self) -> (Option<&Candidate>, f64) {
        let laws = self.candidates.iter();
        let mut laws = laws.filter(|one| one.name != "noise" && one.name != "shared-stream");
        let lossy = laws.clone().find(|one| !one.lossless && one.stands());
        let lossy = lossy.map_or(0.0, |one| one.log.max(0.0));
        let lossless = laws.find(|one| one.lossless && self.keeps_so(one));
        let own = lossless.map_or(0.0, |one| one.log);
        (lossless, own - lossy)
    }
}

impl Candidate {
    /// Tells whether what comes out does not speak against it by as much as a cause has to be ahead.
    fn stands(&self) -> bool {
        self.outputs.is_none_or(|log| log > -NAMED)
    }

    /// Tells whether it says that drafts are drawn otherwise.
    fn changes_drafts(&self) -> bool {
        match self.law {
            Some(Law::Draft(_) | Law::OtherDraft(_) | Law::Both(_) | Law::Engine(_)) => true,
            Some(law) => matches!(law, Law::Sampled | Law::Likeliest),
            None => matches!(
                self.name,
                "drafts-unlike-their-rows"
                    | "seed-reset-each-round"
                    | "shared-stream"
                    | "block"
                    | "token"
            ),
        }
    }

    fn new(
        name: &'static str,
        log: f64,
        words: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        let (words, cure) = (words.into(), cure.into());
        Self {
            name,
            law: None,
            share: 1.0,
            log,
            unpaid: log,
            fit: Map::new(),
            words,
            cure,
            lossless: false,
            tv: None,
            outputs: None,
        }
    }
}

fn slot_of(share: f64) -> Option<usize> {
    SHARES.iter().position(|(own, _)| *own == share)
}

/// Steps until an outcome comes with probability 99% that the claim excludes.
fn excluded_outcomes([steps, sum, squares]: [f64; 3], looked: f64) -> Option<u64> {
    if steps < 20.0 {
        return None;
    }
    let mean = sum / steps;
    let error = ((squares / steps - mean * mean).max(0.0) / steps).sqrt();
    let lost = (1.0 - mean - 3.0 * error) * steps / looked;
    (lost > 1e-4).then(|| (100f64.ln() / lost).ceil() as u64)
}

fn json_map<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    let pairs = pairs.map(|(name, value)| (name.to_owned(), value));
    pairs.into_iter().collect()
}

fn banned_fit(tokens: &[usize]) -> Map<String, Value> {
    match tokens {
        [token] => json_map([("token", json!(token))]),
        _ => json_map([("tokens", json!(tokens))]),
    }
}

fn banned_in_words(tokens: &[usize], expected: f64) -> String {
    let expected = format!("where about {expected:.0} were expected");
    match tokens {
        [token] => format!("token {token} never comes, {expected}"),
        _ => {
            let first: Vec<String> = tokens.iter().take(8).map(usize::to_string).collect();
            let (count, first) = (tokens.len(), first.join(", "));
            let more = if count > 8 { ", .." } else { "" };
            format!("{count} tokens never come ({first}{more}), {expected}")
        }
    }
}

fn of_threshold(threshold: &Threshold, of: &str) -> Candidate {
    let (low, high) = (threshold.refused, threshold.kept);
    let middle = 0.5 * (low + high);
    let value = (middle * 1e4).round() / 1e4;
    let range = json!([low, high]);
    let [at, low, high] = [middle, low, high].map(short);
    let words =
        format!("drafts are kept without a coin, where {of} is at least {at} ({low} to {high})");
    let cure = "draw a uniform number for each draft, and keep it if u <= p/q";
    let fit = [
        ("of", json!(of)),
        ("value", json!(value)),
        ("value_range", range),
    ];
    Candidate {
        fit: json_map(fit),
        ..Candidate::new("threshold", threshold.log, words, cure)
    }
}

/// Lists what stands against "as claimed" though nothing was refuted, and what would decide.
pub(crate) fn open(
    found: &Found,
    settings: &Settings,
    [positions, left_out]: [usize; 2],
    surprise: Option<&Surprise>,
    wanted: Option<u64>,
) -> Vec<String> {
    let mut open = Vec::new();
    let all = positions + left_out;
    let share = |count: usize| count as f64 / all.max(1) as f64;
    if share(found.tied) > 1.0 - LOOKED {
        open.push(format!(
            "at {} of {all} positions equal tokens stand at the end of a cut, and which of them the engine keeps is \
             not known: log its rows as they are behind the cuts",
            found.tied
        ));
    }
    if share(found.looked + found.tied) < LOOKED {
        open.push(format!(
            "{}% of this log was looked at ({} of {all} positions): record the drafts, the outputs and the rows of the others",
            short((100.0 * share(found.looked)).floor()),
            found.looked,
        ));
    }
    let hidden = found.hidden();
    if hidden >= settings.exclude {
        let least = (100.0 * (hidden + 0.05)).ceil() / 100.0;
        let or = match hidden < 0.5 {
            true => format!(", or say --exclude {}", short(least)),
            false => String::new(),
        };
        open.push(format!(
            "tokens that the log does not promise to be the likeliest (top) have {}% of p, and nothing shows how they are \
             drawn: log full rows, or longer lists{or}",
            short((1000.0 * hidden).round() / 10.0),
        ));
    }
    let z = surprise.and_then(|one| one.z);
    if let Some(z) = z.filter(|z| z.abs() > SURPRISED && settings.rule.is_lossless()) {
        open.push(format!(
            "the text surprises p {} than it should (z = {z:+.1}), in no way that is known: compare the rows, the temperature and the cuts with what the engine was asked for",
            if z > 0.0 { "more" } else { "less" }
        ));
    }
    if settings.rule != Rule::TEXT && found.tally.steps[1] == 0 {
        open.push("no draft was tested: log drafts and accepted".to_owned());
    }
    match wanted {
        None if found.looked + found.tied == 0 => {
            open.push("nothing was looked at: log rows and outputs".to_owned())
        }
        Some(tokens) if tokens > 0 => {
            let own = ", or --noise 0 if these rows are the engine's own";
            let may_be_own = found.noises && settings.noise.is_none();
            let own = if may_be_own { own } else { "" };
            let of = " of requests with a seed of their own (of those that share one, as is said, one text counts)";
            let of = if found.shares_said() { of } else { "" };
            open.push(format!(
                "{} tokens are too few to find every departure of {} or more in total variation: about {tokens} more{of} would do{own}",
                found.looked, short(settings.exclude)
            ));
        }
        _ => {}
    }
    open
}

/// Returns the verdict where nothing is refuted by a hard check.
pub(crate) fn concluded(
    weighed: &Weighed<'_>,
    [rule_falls, outputs_fall]: [bool; 2],
    numbers: Option<&str>,
    shares_known: bool,
) -> Option<Conclusion> {
    match numbers {
        Some("seed-reset-each-round") => return Some(Conclusion::Lossy),
        Some(_) if shares_known => return Some(Conclusion::NotTheRule),
        Some(_) => return None,
        None => {}
    }
    if outputs_fall {
        return Some(Conclusion::Lossy);
    }
    if !rule_falls {
        return None;
    }
    let (lossless, ahead) = weighed.is_lossless();
    let leads = |one: &Candidate| !weighed.drafts_fall() || one.changes_drafts();
    let is_most = |one: &Candidate| one.share >= MOSTLY;
    // Of a claim that lets outputs differ from p, too.
    let follows = weighed.of_outputs < weighed.needed();
    if follows && lossless.is_some_and(|one| leads(one) && is_most(one)) && ahead >= NAMED {
        return Some(Conclusion::LosslessOther);
    }
    let moves = weighed.leader().is_some_and(|(one, _)| {
        !one.lossless
            && one.name != "drafts-unlike-their-rows"
            && one.tv.is_some_and(|tv| tv > 1e-3)
            && one.outputs.is_none_or(|log| log > SPOKEN)
            && one.log >= weighed.nearest_lossless()
    });
    match moves && -ahead >= weighed.needed() {
        true => Some(Conclusion::Lossy),
        false => Some(Conclusion::NotTheRule),
    }
}
