//! Small multiples: panels side by side on the same axes.

use super::{
    APART, Field, LABEL, Line, LinePlot, MARGIN, SWATCH, TITLE, Ticks, WIDTH, Y_LABEL_AT, headed,
    ticks, widest,
};
use crate::canvas::{Align, Canvas, Ink};

/// Charts of the same axes, two in a row, each with the meaning of its lines under it.
///
/// # Example
/// ```
/// use specgap_page::plot::{Axis, Line, LinePlot, PanelPlot, Point};
///
/// let line = |y| Line { label: "rule".into(), points: vec![Point::new(1.0, y)], ..Line::default() };
/// let chart = LinePlot {
///     title: "t".into(),
///     x: Axis { label: "n".into(), stops: vec![(1.0, "1".into())], log: false },
///     y_label: "accepted, %".into(),
///     ..LinePlot::default()
/// };
/// let panels = vec![("a".into(), vec![line(0.5)]), ("b".into(), vec![line(0.6)])];
/// let plot = PanelPlot { chart, panels };
/// assert!(plot.draw().svg("t", "a and b")?.starts_with("<svg"));
/// # Ok::<(), specgap_page::DrawError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PanelPlot {
    /// The title over all, and the axes of each; it has no lines of its own.
    pub chart: LinePlot,
    /// A title and its lines each.
    pub panels: Vec<(String, Vec<Line>)>,
}

/// Height of a panel's field.
const PLOT: f64 = 150.0;
/// Height of the strip over it, for its title.
const OVER: f64 = 26.0;
/// Height of the strip under it, for the axis.
const UNDER: f64 = 62.0;
/// Distance of two panels.
const BETWEEN: f64 = 16.0;

impl PanelPlot {
    /// The charts as a picture.
    pub fn draw(&self) -> Canvas {
        let labels = self.panels.iter().flat_map(|(title, lines)| {
            std::iter::once(title.as_str()).chain(lines.iter().map(|line| line.label.as_str()))
        });
        let cell =
            ((WIDTH - 2.0 * MARGIN - BETWEEN) / 2.0).max(widest(labels, LABEL) + SWATCH + 8.0);
        let width = (2.0 * (cell + MARGIN) + BETWEEN)
            .max(Canvas::text_width(&self.chart.title, TITLE) + 2.0 * MARGIN);
        let rows: Vec<_> = self.panels.chunks(2).collect();
        let height = |row: &[(String, Vec<Line>)]| {
            let lines = row.iter().map(|(_, lines)| lines.len()).max().unwrap_or(0);
            OVER + PLOT + UNDER + lines as f64 * APART
        };
        let upper = 52.0;
        let all = upper + rows.iter().map(|row| height(row)).sum::<f64>();
        let LinePlot { title, y_label, .. } = &self.chart;
        let mut canvas = headed(title, width, all);
        canvas.keep(self.data(), self.tex());
        canvas.text(y_label, Y_LABEL_AT, LABEL, Align::Left, Ink::Quiet);
        let whole = self.plot_of("", self.panels.iter().flat_map(|(_, lines)| lines));
        let (low, high) = whole.y_bounds();
        let ticks = ticks(low, high, 4, self.chart.percent);
        let mut top = upper;
        for row in rows {
            for (index, (title, lines)) in row.iter().enumerate() {
                let left = MARGIN + index as f64 * (cell + BETWEEN);
                self.panel(&mut canvas, title, lines, [left, top, cell], &ticks);
            }
            top += height(row);
        }
        canvas
    }

    fn plot_of<'a>(&self, title: &str, lines: impl IntoIterator<Item = &'a Line>) -> LinePlot {
        LinePlot {
            title: title.to_owned(),
            lines: lines.into_iter().cloned().collect(),
            ..self.chart.clone()
        }
    }

    fn panel(
        &self,
        canvas: &mut Canvas,
        title: &str,
        lines: &[Line],
        [left, top, width]: [f64; 3],
        ticks: &Ticks,
    ) {
        let plot = self.plot_of(title, lines);
        canvas.text(title, (left, top + 10.0), LABEL, Align::Left, Ink::Text);
        let field = Field {
            left: left + 36.0,
            right: left + width,
            upper: top + OVER,
            lower: top + OVER + PLOT,
            x: plot.x.ends(),
            y: ticks.ends(),
            log: plot.x.log,
        };
        plot.axes(canvas, &field, ticks);
        plot.curves(canvas, &field);
        let first = field.lower + UNDER;
        for (index, line) in lines.iter().enumerate() {
            line.explain(canvas, (left, first + index as f64 * APART));
        }
    }

    /// Every point, a row each.
    fn data(&self) -> String {
        let mut out = String::new();
        for (title, lines) in &self.panels {
            let data = self.plot_of(title, lines).data();
            for (index, line) in data.lines().enumerate() {
                match (index, out.is_empty()) {
                    (0, true) => out.push_str(&format!("panel,{line}\n")),
                    (0, false) => {}
                    _ => out.push_str(&format!("{},{line}\n", crate::csv(title))),
                }
            }
        }
        out
    }

    /// A picture of pgfplots each, two a line, so that many are no longer than a page.
    fn tex(&self) -> String {
        let panel = |(at, (title, lines)): (usize, &(String, Vec<Line>))| {
            let end = if at % 2 == 1 { "\n" } else { "\\hfill\n" };
            self.plot_of(title, lines).half() + end
        };
        let all: String = self.panels.iter().enumerate().map(panel).collect();
        format!(
            "% {}\n{all}",
            super::super::latex::one_line(&self.chart.title)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Point};

    fn plot(panels: usize) -> PanelPlot {
        let points = [Point::new(2.0, 0.5), Point::new(3.0, 0.625)];
        let line = |name: String| Line::solid(name, 0, points);
        let stops = [(2.0, "2".to_owned()), (3.0, "3".to_owned())];
        PanelPlot {
            chart: LinePlot {
                percent: true,
                ..LinePlot::new("A title", Axis::new("drafts", stops), "", Vec::new())
            },
            panels: (0..panels)
                .map(|at| (format!("law {at}"), vec![line(format!("rule {at}"))]))
                .collect(),
        }
    }

    /// All panels have the same axes, stand apart from each other and within the picture.
    #[test]
    fn panels_stand_apart_on_the_same_axes() {
        let canvas = plot(3).draw();
        let places = |wanted: &str| -> Vec<(f64, f64)> {
            let found = canvas.texts().filter(|(text, _)| *text == wanted);
            found.map(|(_, at)| at).collect()
        };
        // The ticks are percents, once a panel.
        assert_eq!(places("50").len(), 3);
        assert!(places("0.5").is_empty());
        let [a, b, c] = ["law 0", "law 1", "law 2"].map(|name| places(name)[0]);
        assert!(a.0 < b.0 && a.1 == b.1 && c.0 == a.0 && c.1 > a.1 + PLOT);
        let width = f64::from(canvas.width());
        assert!(canvas.texts().all(|(_, (x, _))| x >= 0.0 && x < width));
        assert!(
            canvas
                .data()
                .starts_with("panel,line,x,y,low,high\nlaw 0,rule 0,2,0.5,0.5,0.5\n")
        );
        assert_eq!(canvas.data().lines().count(), 7);
        let tex = canvas.tex();
        assert_eq!(tex.matches("\\begin{axis}").count(), 3);
        // Two a line, under their names.
        assert_eq!(tex.matches("width=.49\\linewidth").count(), 3);
        assert!(tex.contains("title={law 1}") && tex.matches("\\hfill").count() == 2);
    }

    #[test]
    fn no_panels_can_be_drawn() {
        assert!(plot(0).draw().svg("t", "d").is_ok());
    }
}
