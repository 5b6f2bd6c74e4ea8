//! Plots, as SVG text. Pure functions from series to a picture.

use super::scene::{FAMILY, register};
use plotters::coord::Shift;
use plotters::prelude::*;

/// Colours that keep apart for colour-blind readers (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];
const INK: RGBColor = RGBColor(40, 40, 40);
const GRID: RGBColor = RGBColor(225, 225, 225);

/// Why a plot could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plot: {0}")]
pub struct PlotError(pub(super) String);

/// One line of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its label, drawn beside its last point.
    pub label: String,
    /// Points (x, y).
    pub points: Vec<(f64, f64)>,
    /// Drawn dashed: a lesser relative of the series before it.
    pub dashed: bool,
}

/// A line plot over whole numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct LinePlot {
    /// Title.
    pub title: String,
    /// Under the x axis.
    pub x_label: String,
    /// Beside the y axis.
    pub y_label: String,
    /// The lines.
    pub series: Vec<Series>,
}

impl LinePlot {
    /// The plot as SVG text, `width` by `height` pixels.
    ///
    /// # Errors
    /// No points, or a drawing back end that fails.
    ///
    /// # Example
    /// ```
    /// use specgap::report::plot::{LinePlot, Series};
    /// let line = Series { label: "a".into(), points: vec![(1.0, 0.5), (2.0, 0.75)], dashed: false };
    /// let plot = LinePlot {
    ///     title: "t".into(), x_label: "n".into(), y_label: "rate".into(), series: vec![line],
    /// };
    /// assert!(plot.svg(400, 300)?.starts_with("<svg"));
    /// # Ok::<(), specgap::report::plot::PlotError>(())
    /// ```
    pub fn svg(&self, width: u32, height: u32) -> Result<String, PlotError> {
        register();
        let mut text = String::new();
        {
            let area = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
            self.draw(&area)
                .map_err(|error| PlotError(error.to_string()))?;
            area.present()
                .map_err(|error| PlotError(error.to_string()))?;
        }
        Ok(text)
    }

    fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
    ) -> Result<(), Box<dyn std::error::Error>>
    where
        B::ErrorType: 'static,
    {
        let points = || {
            self.series
                .iter()
                .flat_map(|series| series.points.iter().copied())
        };
        if points().next().is_none() {
            return Err("there are no points to draw".into());
        }
        let fold = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
                (low.min(v), high.max(v))
            })
        };
        let (x_low, x_high) = fold(&mut points().map(|(x, _)| x));
        let (y_low, y_high) = fold(&mut points().map(|(_, y)| y));
        let margin = ((y_high - y_low) * 0.08).max(1e-3);
        let (bottom, top) = ((y_low - margin).max(0.0), y_high + margin);
        area.fill(&WHITE)?;
        // Room on the right for the labels beside the last points.
        let room = (x_high - x_low).max(1.0) * 0.6;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, (FAMILY, 19).into_font().color(&INK))
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(x_low - 0.1..x_high + room, bottom..top)?;
        chart
            .configure_mesh()
            .x_desc(&self.x_label)
            .y_desc(&self.y_label)
            .disable_x_mesh()
            .light_line_style(WHITE)
            .bold_line_style(GRID)
            .axis_style(INK)
            .x_labels((x_high - x_low + room).ceil() as usize + 2)
            .x_label_formatter(&|x| {
                if *x <= x_high && (x - x.round()).abs() < 1e-9 {
                    format!("{x:.0}")
                } else {
                    String::new()
                }
            })
            .y_label_formatter(&|y| format!("{y:.2}"))
            .label_style((FAMILY, 14).into_font().color(&INK))
            .draw()?;
        let labels = self.label_heights((top - bottom) / 17.0);
        for (index, (series, label_y)) in self.series.iter().zip(labels).enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let stroke = colour.stroke_width(2);
            if series.dashed {
                chart.draw_series(DashedLineSeries::new(series.points.clone(), 7, 5, stroke))?;
            } else {
                chart.draw_series(LineSeries::new(series.points.clone(), stroke))?;
            }
            chart.draw_series(
                series
                    .points
                    .iter()
                    .map(|&point| Circle::new(point, 4, colour.filled())),
            )?;
            if let Some(&(x, _)) = series.points.last() {
                let style = (FAMILY, 15).into_font().color(&colour);
                let place = (x + (x_high - x_low).max(1.0) * 0.03, label_y);
                chart.draw_series(std::iter::once(Text::new(
                    series.label.clone(),
                    place,
                    style,
                )))?;
            }
        }
        Ok(())
    }

    /// Heights of the labels: at the last points, pushed apart so that none
    /// covers another.
    fn label_heights(&self, apart: f64) -> Vec<f64> {
        let mut order: Vec<(usize, f64)> = self
            .series
            .iter()
            .enumerate()
            .map(|(index, series)| (index, series.points.last().map_or(0.0, |&(_, y)| y)))
            .collect();
        order.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut heights = vec![0.0; order.len()];
        let mut ceiling = f64::INFINITY;
        for (index, y) in order {
            let height = (y + apart * 0.4).min(ceiling);
            heights[index] = height;
            ceiling = height - apart;
        }
        heights
    }
}
