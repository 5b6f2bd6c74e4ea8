//! Pictures of reports: what is drawn, and what is said of it.

use specgap_page::plot::{Line, LinePlot, Point};
use specgap_page::{Canvas, Figure};

/// A chart of lines, under what is found in it or else its own title. What is `said` of it is for
/// readers who do not see it.
pub(super) fn chart(
    name: impl Into<String>,
    plot: &LinePlot,
    said: &str,
    caption: String,
    finding: Option<String>,
) -> Figure {
    figure(
        name,
        plot.title.clone(),
        (said, caption),
        plot.draw(),
        finding,
    )
}

/// The same of any picture.
pub(super) fn figure(
    name: impl Into<String>,
    title: String,
    (said, caption): (&str, String),
    canvas: Canvas,
    finding: Option<String>,
) -> Figure {
    Figure {
        name: name.into(),
        alt: format!("{title}. {said}."),
        caption,
        canvas,
        title: finding.unwrap_or(title),
    }
}

/// Says what each line begins and ends with.
pub(super) fn ends(lines: &[Line], said: impl Fn(&Point) -> String) -> String {
    let ends = lines.iter().filter_map(|line| {
        let [from, to] = [line.points.first()?, line.points.last()?].map(&said);
        Some(format!("{}: from {from} to {to}", line.label))
    });
    ends.collect::<Vec<_>>().join("; ")
}
