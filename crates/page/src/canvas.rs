//! A picture as a list of marks, drawn alike as SVG and PDF.

mod pdf;

use super::words::markup_escaped as escape;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};
use std::sync::Once;

/// DejaVu Sans, shipped with the crate: plots must not depend on what fonts a
/// machine has.
pub const FONT: &[u8] = include_bytes!("../../../assets/fonts/DejaVuSans.ttf");
const FAMILY: &str = "sans-serif";

fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Fails only for bytes that are no font; these are one.
        let _ = register_font(FAMILY, FontStyle::Normal, FONT);
    });
}

/// Why a picture could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("picture: {0}")]
pub struct DrawError(String);

/// A colour by what it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// The background.
    Paper,
    /// Words and numbers.
    Text,
    /// What is read last.
    Quiet,
    /// Lines of a grid.
    Grid,
    /// One of the hues that keep apart for colour-blind readers.
    Hue(usize),
}

/// Each on light and on dark paper, hues last. No two are equal on either: the dark scheme tells
/// them apart by the light one.
const PALETTE: [[RGBColor; 2]; 4 + Ink::HUES] = [
    [RGBColor(255, 255, 255), RGBColor(22, 24, 26)],
    [RGBColor(34, 34, 34), RGBColor(230, 230, 227)],
    [RGBColor(95, 95, 95), RGBColor(165, 165, 160)],
    [RGBColor(226, 226, 226), RGBColor(52, 55, 58)],
    [RGBColor(0, 114, 178), RGBColor(86, 180, 233)],
    [RGBColor(200, 80, 0), RGBColor(255, 150, 80)],
    [RGBColor(0, 135, 100), RGBColor(60, 205, 160)],
    [RGBColor(170, 60, 140), RGBColor(230, 140, 205)],
    [RGBColor(140, 108, 0), RGBColor(225, 195, 70)],
    [RGBColor(60, 60, 150), RGBColor(160, 160, 245)],
    [RGBColor(110, 110, 110), RGBColor(175, 175, 175)],
    [RGBColor(160, 15, 45), RGBColor(255, 115, 130)],
    [RGBColor(0, 105, 125), RGBColor(95, 215, 225)],
];

impl Ink {
    /// How many hues there are.
    pub const HUES: usize = 9;

    /// On light paper.
    fn light(self) -> RGBColor {
        let [light, _] = PALETTE[match self {
            Self::Paper => 0,
            Self::Text => 1,
            Self::Quiet => 2,
            Self::Grid => 3,
            Self::Hue(index) => 4 + index % Self::HUES,
        }];
        light
    }

    /// Its red, green and blue on paper that is printed.
    pub(super) fn on_paper(self) -> [u8; 3] {
        let RGBColor(red, green, blue) = self.light();
        [red, green, blue]
    }
}

/// Where a text stands against its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// It begins there.
    Left,
    /// Its middle is there.
    Centre,
    /// It ends there.
    Right,
}

#[derive(Clone, Debug)]
enum Shape {
    /// Through points, so wide.
    Line(Vec<(f64, f64)>, f64),
    /// Between two corners, so opaque.
    Block([(f64, f64); 2], f64),
    /// Around a centre, with a radius.
    Disc((f64, f64), f64),
    /// At a point, of a size.
    Text(String, (f64, f64), f64, Align),
}

/// A shape in its colour.
#[derive(Clone, Debug)]
struct Mark(Ink, Shape);

/// A picture as a list of marks. Coordinates are pixels from the upper left corner.
#[derive(Clone, Debug, Default)]
pub struct Canvas {
    width: u32,
    height: u32,
    marks: Vec<Mark>,
    /// Which mark is the title, and how much higher the rest would stand without it.
    title: Option<(usize, u32)>,
    /// What is drawn, as comma-separated values.
    data: String,
    /// The same as an axis of pgfplots.
    tex: String,
}

/// Pixels of an SVG are cut this fine.
const FINE: u32 = 8;

impl Canvas {
    /// Pixels from left to right.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// An empty canvas, in pixels.
    pub fn new(width: u32, height: u32) -> Self {
        register();
        Self {
            width,
            height,
            ..Self::default()
        }
    }

    /// Its title, in a strip of so many pixels at its top that holds nothing else.
    pub(crate) fn head(&mut self, text: &str, at: (f64, f64), size: f64, strip: u32) {
        self.title = Some((self.marks.len(), strip));
        self.text(text, at, size, Align::Left, Ink::Text);
    }

    /// Returns what stands as its title; empty if it has none.
    pub(crate) fn heading(&self) -> &str {
        let mark = self.title.and_then(|(index, _)| self.marks.get(index));
        match mark {
            Some(Mark(_, Shape::Text(text, ..))) => text,
            _ => "",
        }
    }

    /// Keeps what is drawn, as comma-separated values and as TeX.
    pub(crate) fn keep(&mut self, data: String, tex: String) {
        self.data = data;
        self.tex = tex;
    }

    /// Returns what is drawn as TeX for pgfplots, without a title; empty for a drawing.
    pub fn tex(&self) -> &str {
        &self.tex
    }

    /// Returns what is drawn, as comma-separated values under names; empty for a drawing.
    pub fn data(&self) -> &str {
        &self.data
    }

    /// This picture without its title, for a paper that has a caption.
    pub fn untitled(&self) -> Self {
        let mut all = self.clone();
        let Some((index, strip)) = all.title.take().filter(|(_, strip)| *strip < self.height)
        else {
            return all;
        };
        all.marks.remove(index);
        all.height -= strip;
        let up = f64::from(strip);
        for Mark(_, shape) in &mut all.marks {
            match shape {
                Shape::Line(points, _) => points.iter_mut().for_each(|(_, y)| *y -= up),
                Shape::Block(corners, _) => corners.iter_mut().for_each(|(_, y)| *y -= up),
                Shape::Disc((_, y), _) | Shape::Text(_, (_, y), ..) => *y -= up,
            }
        }
        all
    }

    /// Draws a line through points.
    pub fn line(&mut self, points: &[(f64, f64)], ink: Ink, width: f64) {
        self.marks
            .push(Mark(ink, Shape::Line(points.to_vec(), width)));
    }

    /// A line in dashes: lengths drawn and left out in turn. Without lengths it
    /// is solid.
    pub(crate) fn dashed(&mut self, points: &[(f64, f64)], ink: Ink, width: f64, lengths: &[f64]) {
        if lengths.is_empty() || lengths.iter().any(|&length| length < 0.5) {
            self.line(points, ink, width);
            return;
        }
        let (mut index, mut left) = (0, lengths[0]);
        for pair in points.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            let length = (x1 - x0).hypot(y1 - y0);
            let mut done = 0.0;
            while done < length {
                let step = left.min(length - done);
                let place = |at: f64| (x0 + (x1 - x0) * at / length, y0 + (y1 - y0) * at / length);
                if index % 2 == 0 {
                    self.line(&[place(done), place(done + step)], ink, width);
                }
                done += step;
                left -= step;
                if left <= 0.0 {
                    index = (index + 1) % lengths.len();
                    left = lengths[index];
                }
            }
        }
    }

    pub(crate) fn block(&mut self, corners: [(f64, f64); 2], ink: Ink, opacity: f64) {
        self.marks.push(Mark(ink, Shape::Block(corners, opacity)));
    }

    /// Draws a disc.
    pub fn disc(&mut self, centre: (f64, f64), radius: f64, ink: Ink) {
        self.marks.push(Mark(ink, Shape::Disc(centre, radius)));
    }

    pub(crate) fn ring(&mut self, centre: (f64, f64), radius: f64, ink: Ink) {
        self.disc(centre, radius, ink);
        self.disc(centre, radius - 1.5, Ink::Paper);
    }

    /// Writes a line of text.
    pub fn text(&mut self, text: &str, at: (f64, f64), size: f64, align: Align, ink: Ink) {
        let shape = Shape::Text(text.to_owned(), at, size, align);
        self.marks.push(Mark(ink, shape));
    }

    /// Its texts, and where they stand.
    #[cfg(test)]
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, (f64, f64))> {
        self.marks.iter().filter_map(|mark| match &mark.1 {
            Shape::Text(text, at, ..) => Some((text.as_str(), *at)),
            _ => None,
        })
    }

    /// Returns how wide a text is.
    pub(crate) fn text_width(text: &str, size: f64) -> f64 {
        register();
        // Measured large, as widths come in whole pixels.
        (FAMILY, size * TYPE * 16.0)
            .into_font()
            .layout_box(text)
            .map_or(
                text.chars().count() as f64 * size * 0.6,
                |((left, _), (right, _))| f64::from(right - left) / 16.0,
            )
    }

    /// SVG text that follows the reader's light or dark colour scheme.
    ///
    /// # Errors
    /// A drawing back end that fails.
    pub fn svg(&self, title: &str, description: &str) -> Result<String, DrawError> {
        let mut text = String::new();
        let size = (self.width * FINE, self.height * FINE);
        {
            let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
            self.draw(&area)
                .map_err(|error| DrawError(error.to_string()))?;
            area.present()
                .map_err(|error| DrawError(error.to_string()))?;
        }
        let drawn = format!("width=\"{}\" height=\"{}\"", size.0, size.1);
        let shown = format!(
            "width=\"{}\" height=\"{}\" role=\"img\"",
            self.width, self.height
        );
        let text = text.replacen(&drawn, &shown, 1);
        let head = format!(
            "<title>{}</title><desc>{}</desc>\n<style>{}</style>\n",
            escape(title),
            escape(description),
            dark_style()
        );
        Ok(match text.find('>') {
            Some(end) => format!("{}\n{head}{}", &text[..=end], text[end + 1..].trim_start()),
            None => text,
        })
    }

    fn draw<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
    ) -> Result<(), DrawingAreaErrorKind<B::ErrorType>> {
        let scale = f64::from(FINE);
        let point = |(x, y): (f64, f64)| ((x * scale).round() as i32, (y * scale).round() as i32);
        area.fill(&Ink::Paper.light())?;
        for Mark(ink, shape) in &self.marks {
            let ink = ink.light();
            match shape {
                Shape::Line(points, width) => {
                    let style = ShapeStyle {
                        color: ink.to_rgba(),
                        filled: false,
                        stroke_width: (width * scale).round().max(1.0) as u32,
                    };
                    let points: Vec<_> = points.iter().copied().map(point).collect();
                    area.draw(&PathElement::new(points, style))?;
                }
                Shape::Block(corners, opacity) => {
                    let style = ink.mix(*opacity).filled();
                    area.draw(&Rectangle::new(corners.map(point), style))?;
                }
                Shape::Disc(centre, radius) => {
                    let radius = (radius * scale).round();
                    area.draw(&Circle::new(point(*centre), radius, ink.filled()))?;
                }
                Shape::Text(text, at, size, align) => {
                    let across = match align {
                        Align::Left => HPos::Left,
                        Align::Centre => HPos::Center,
                        Align::Right => HPos::Right,
                    };
                    let style = (FAMILY, size * scale * TYPE)
                        .into_font()
                        .color(&ink)
                        .pos(Pos::new(across, VPos::Center));
                    area.draw(&Text::new(text.clone(), point(*at), style))?;
                }
            }
        }
        Ok(())
    }
}

/// A size that plotters takes, for one pixel of an SVG's font size.
const TYPE: f64 = 1.24;

/// Rules that exchange every colour for its dark one, where the reader's scheme
/// is dark.
fn dark_style() -> String {
    let hex = |RGBColor(r, g, b)| format!("#{r:02X}{g:02X}{b:02X}");
    let mut rules = String::new();
    for [light, dark] in PALETTE.map(|both| both.map(hex)) {
        rules.push_str(&format!("[fill=\"{light}\"]{{fill:{dark}}}"));
        rules.push_str(&format!("[stroke=\"{light}\"]{{stroke:{dark}}}"));
    }
    format!("@media screen and (prefers-color-scheme:dark){{{rules}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_a_scheme_are_told_apart() {
        for (index, one) in PALETTE.iter().enumerate() {
            for other in &PALETTE[..index] {
                assert!(one[0] != other[0] && one[1] != other[1]);
            }
        }
    }

    #[test]
    fn a_canvas_becomes_svg() {
        let mut canvas = Canvas::new(60, 40);
        canvas.dashed(&[(5.0, 5.0), (55.0, 35.0)], Ink::Hue(0), 1.0, &[4.0, 3.0]);
        canvas.text("a<b", (30.0, 20.0), 10.0, Align::Centre, Ink::Text);
        let svg = canvas.svg("t", "d").unwrap();
        assert!(svg.starts_with("<svg width=\"60\" height=\"40\" role=\"img\""));
        assert!(svg.contains("a&lt;b"));
    }
}
