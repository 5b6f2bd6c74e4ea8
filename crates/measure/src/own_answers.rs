//! What laws and rules of the caller's own answer at a position.

use super::answers::{Answers, find, gap};
use super::metric::{AboutLaw, AboutOwn, LawRef, Metric, Place, Temperature, rate_of};
use super::own::{OwnAsked, OwnRow, lists_refused};
use super::own_law::LawAsked;
use super::settings::Asked;
use specgap_core::verifier::VerifierName;
use specgap_number::known::{Kind, Known};

/// Bounds of a number that are further apart are no matter of rounding, which leaves some 1e-8 at a
/// million tokens.
pub(super) const LOOSE: f64 = 1e-7;

/// Answers what is asked of own laws at a temperature, behind the laws of the table, and then what
/// is asked of own rules.
///
/// `whole` says that no token outside of the rows can be drawn; the rows are those of a position by
/// its number, which has a seed.
pub(super) fn answer(
    [target, draft]: [&[f64]; 2],
    whole: bool,
    (position, seed): (usize, u64),
    asked: &[Asked],
    temperature: Temperature,
    answers: &mut Answers,
) -> Result<(), String> {
    if !whole && let Some(first) = asked.iter().flat_map(|one| &one.laws).next() {
        return Err(lists_refused("law", "drafts of", first.law.name()));
    }
    let row = |drafts: usize| OwnRow {
        target,
        draft,
        drafts,
        position,
        seed,
    };
    for one in asked {
        let place = Place::new(temperature, one.drafts);
        for asked in &one.laws {
            if asked.law.is_sampled() {
                let (law, about) = (asked.id, AboutLaw::Optimum);
                answers.insert(
                    Metric::OfLaw { place, law, about },
                    Known::enclosed(1.0, 0.0, 1.0),
                );
                continue;
            }
            let problem = asked.law.problem(row(one.drafts))?;
            let mut insert = |about: AboutLaw, value: Known| {
                let law = asked.id;
                answers.insert(Metric::OfLaw { place, law, about }, value);
            };
            let best = asked.law.best(&problem)?;
            for &name in &asked.rules {
                let rate = asked.law.rate(name, &problem, seed)?;
                insert(AboutLaw::Gap(name), gap_under(&best, &rate, true));
                insert(AboutLaw::Acceptance(name), rate);
            }
            insert(AboutLaw::Optimum, best);
        }
        for asked in &one.laws {
            law_differences(asked, place, answers)?;
        }
    }
    if !whole && let Some(first) = asked.iter().flat_map(|one| &one.own).next() {
        return Err(lists_refused("rule", "accepts of", first.rule.name()));
    }
    for one in asked {
        let place = Place::new(temperature, one.drafts);
        for asked in &one.own {
            let rate = asked.rule.asked(row(one.drafts))?;
            for (about, value) in [
                (AboutOwn::Acceptance, Some(rate.membership)),
                (AboutOwn::Algorithmic, rate.algorithmic),
                (AboutOwn::TotalVariation, rate.total_variation),
                (AboutOwn::Noise, rate.noise),
            ] {
                if let Some(value) = value {
                    let own = asked.own;
                    answers.insert(Metric::Own { place, own, about }, Known::float(value));
                }
            }
        }
        for asked in &one.own {
            rule_differences(asked, place, answers)?;
        }
    }
    Ok(())
}

/// alpha* of an own law minus what a rule accepts. Where only bounds of alpha* are known they are
/// kept, also of a rule whose rounding nobody bounds: then nothing of them is proven.
fn gap_under(best: &Known, rate: &Known, is_lossless: bool) -> Known {
    if best.width() <= LOOSE {
        return gap(best, rate, false);
    }
    let value = best.value() - rate.value();
    if rate.kind() == Kind::Float {
        let ends = [best.lower(), best.upper()].map(|end| end - rate.value());
        return Known::enclosed(value, ends[0], ends[1]).estimated();
    }
    let difference = best.minus(rate);
    match difference.kind() {
        // No lossless rule accepts more than alpha*.
        Kind::Enclosed if is_lossless => {
            Known::enclosed(value, difference.lower().max(0.0), difference.upper())
        }
        _ => difference,
    }
}

/// alpha* of a law minus what a rule accepts.
pub(super) fn gap_of(place: Place, law: LawRef, name: VerifierName) -> Metric {
    match law {
        LawRef::Table(scheme) => {
            let rule = (scheme, name);
            Metric::Gap { place, rule }
        }
        LawRef::Own(law) => {
            let about = AboutLaw::Gap(name);
            Metric::OfLaw { place, law, about }
        }
    }
}

/// Adds how much more is accepted of it than of other laws.
fn law_differences(asked: &LawAsked, place: Place, answers: &mut Answers) -> Result<(), String> {
    let law = asked.id;
    for &(name, other) in &asked.pairs {
        let rate = find(answers, rate_of(place, LawRef::Own(law), name))?;
        let theirs = find(answers, rate_of(place, other, name))?;
        let about = AboutLaw::Less(name, other);
        answers.insert(Metric::OfLaw { place, law, about }, rate.minus(&theirs));
    }
    Ok(())
}

/// The gap of an own rule, and how much more it accepts than others.
fn rule_differences(asked: &OwnAsked, place: Place, answers: &mut Answers) -> Result<(), String> {
    let own = asked.own;
    let number = |about: AboutOwn| Metric::Own { place, own, about };
    let rate = find(answers, number(AboutOwn::Acceptance))?;
    let best = find(answers, rate_of(place, asked.law, None))?;
    let lost = match asked.law {
        LawRef::Table(_) => gap(&best, &rate, false),
        // It need not be lossless.
        LawRef::Own(_) => gap_under(&best, &rate, false),
    };
    answers.insert(number(AboutOwn::Gap), lost);
    for &other in &asked.pairs {
        let less = rate.minus(&find(answers, other.rate(place))?);
        answers.insert(number(AboutOwn::Less(other)), less);
    }
    Ok(())
}
