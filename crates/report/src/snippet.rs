//! Annotated source lines, in the style of rustc.
//!
//! An own writer and not annotate-snippets, after a look at both. That crate renders ranges of whole
//! files; we hold single lines whose other content was blanked, so:
//! the column in `-->` must be that of the original line, which the blanked one no longer has;
//! lines far apart would need a made-up file with all the empty lines between them;
//! notes and labels must wrap with a hanging indent, which it leaves to the terminal;
//! and control characters are to be shown as the code points that they are, here as everywhere else.

use std::fmt::Write as _;

use anstyle::Style;
use model::{Source, Status};
use unicode_width::UnicodeWidthChar as _;

use crate::escape;
use crate::screen::{BOLD, DIM, GUTTER, PLAIN, Screen, columns, status_style, wrap};

/// Columns between tab stops.
const TAB: usize = 4;
/// Where nothing is wrapped, source lines still are: minified ones can be a megabyte long.
const SOURCE_ROOM: usize = 200;
/// Columns that a label needs beside its mark; with less it goes below.
const LABEL_ROOM: usize = 24;

/// One line of a file with everything that marks it.
struct Row<'s> {
    line: u32,
    text: &'s str,
    marks: Vec<Mark<'s>>,
}

/// A marked range with what is said about it.
struct Mark<'s> {
    from: usize,
    to: usize,
    primary: bool,
    labels: Vec<&'s str>,
}

/// Writes the lines of a finding and returns the width of the gutter, to which `trailer` aligns.
pub(crate) fn write(screen: &mut Screen<'_>, status: Status, sources: &[Source]) -> usize {
    let gutter = sources
        .iter()
        .map(|s| s.place.line)
        .max()
        .map_or(1, |line| line.to_string().len());
    for (index, (file, of_file)) in by_file(sources).into_iter().enumerate() {
        let anchor = of_file.iter().find(|s| s.primary).or(of_file.first());
        screen.pad(gutter);
        screen.paint(GUTTER, if index == 0 { "--> " } else { "::: " });
        let mut position = screen.name(file).into_owned();
        if let Some(source) = anchor.filter(|s| s.place.line > 0) {
            let _ = write!(position, ":{}", source.place.line);
            if source.place.column > 0 {
                let _ = write!(position, ":{}", source.place.column);
            }
        }
        screen.push(&position);
        screen.end();
        let rows = rows(&of_file);
        if rows.is_empty() {
            continue;
        }
        bar(screen, gutter);
        screen.end();
        let mut last: Option<u32> = None;
        for row in &rows {
            if last.is_some_and(|last| row.line > last.saturating_add(1)) {
                screen.paint(GUTTER, "...");
                screen.end();
            }
            write_row(screen, gutter, status, row);
            last = Some(row.line);
        }
    }
    gutter
}

/// The empty line between the source and what follows.
pub(crate) fn close(screen: &mut Screen<'_>, gutter: usize) {
    bar(screen, gutter);
    screen.end();
}

/// `= word: text` below a snippet; `text` is safe.
pub(crate) fn trailer(screen: &mut Screen<'_>, gutter: usize, word: &str, text: &str) {
    screen.pad(gutter + 1);
    screen.paint(GUTTER, "= ");
    screen.paint(BOLD, word);
    screen.push(": ");
    let column = gutter + 3 + columns(word) + 2;
    screen.para(column, column, PLAIN, text);
}

/// Sources by file, in the order in which the files occur.
fn by_file(sources: &[Source]) -> Vec<(&str, Vec<&Source>)> {
    let mut files: Vec<(&str, Vec<&Source>)> = Vec::new();
    for source in sources {
        match files
            .iter_mut()
            .find(|(file, _)| *file == &*source.place.file)
        {
            Some((_, list)) => list.push(source),
            None => files.push((&source.place.file, vec![source])),
        }
    }
    files
}

/// Lines in the order of the file, each once, with their marks from left to right.
fn rows<'s>(sources: &[&'s Source]) -> Vec<Row<'s>> {
    let mut rows: Vec<Row<'s>> = Vec::new();
    for source in sources {
        let place = &source.place;
        let text = place.text.trim_end();
        if place.line == 0 || text.is_empty() {
            continue;
        }
        let (from, to) = place.mark;
        let mark = Mark {
            from: from as usize,
            to: to as usize,
            primary: source.primary,
            labels: vec![&source.label],
        };
        // The same line can be blanked in different ways, once for each setting on it.
        match rows
            .iter_mut()
            .find(|row| row.line == place.line && row.text == text)
        {
            Some(row) => row.add(mark),
            None => rows.push(Row {
                line: place.line,
                text,
                marks: vec![mark],
            }),
        }
    }
    rows.sort_by_key(|row| row.line);
    for row in &mut rows {
        row.marks.sort_by_key(|mark| (mark.from, mark.to));
    }
    rows
}

impl<'s> Row<'s> {
    fn add(&mut self, mark: Mark<'s>) {
        let same = |m: &&mut Mark<'s>| (m.from, m.to) == (mark.from, mark.to);
        match self.marks.iter_mut().find(same) {
            // One line behind a YAML anchor can be both roles' line.
            Some(known) => {
                known.primary |= mark.primary;
                for label in mark.labels {
                    if !known.labels.contains(&label) {
                        known.labels.push(label);
                    }
                }
            }
            None => self.marks.push(mark),
        }
    }
}

fn bar(screen: &mut Screen<'_>, gutter: usize) {
    screen.pad(gutter + 1);
    screen.paint(GUTTER, "|");
}

fn write_row(screen: &mut Screen<'_>, gutter: usize, status: Status, row: &Row<'_>) {
    let room = screen
        .width()
        .saturating_sub(gutter + 3)
        .clamp(20, SOURCE_ROOM);
    let cells = Cells::new(row.text, screen.ascii());
    let ranges: Vec<(usize, usize)> = row
        .marks
        .iter()
        .map(|mark| cells.range(mark.from, mark.to))
        .collect();
    let from = ranges.iter().map(|r| r.0).min().unwrap_or(0);
    let to = ranges.iter().map(|r| r.1).max().unwrap_or(0);
    let ellipsis = screen.ellipsis();
    let needed = to.saturating_sub(from) + 2 * columns(ellipsis);
    if row.marks.len() > 1 && cells.total > room && needed > room {
        // No cut shows all marks: show the line once for each.
        for (mark, range) in row.marks.iter().zip(ranges) {
            let window = cells.window(range, room, ellipsis);
            write_source(screen, gutter, row.line, &cells, &window, ellipsis);
            write_mark(screen, gutter, status, mark, window.shift(range));
        }
        return;
    }
    let window = cells.window((from, to), room, ellipsis);
    write_source(screen, gutter, row.line, &cells, &window, ellipsis);
    for (mark, range) in row.marks.iter().zip(ranges) {
        write_mark(screen, gutter, status, mark, window.shift(range));
    }
}

fn write_source(
    screen: &mut Screen<'_>,
    gutter: usize,
    line: u32,
    cells: &Cells,
    window: &Window,
    ellipsis: &str,
) {
    screen.paint(GUTTER, &format!("{line:>gutter$} |"));
    let mut text = String::from(" ");
    let mut column = window.from;
    if window.cut_left {
        text.push_str(ellipsis);
        column += columns(ellipsis);
    }
    for cell in &cells.cells {
        let end = cell.column + cell.width;
        if cell.column < window.text_from || end > window.text_to {
            continue;
        }
        // Half of a wide character that the cut went through.
        text.extend(std::iter::repeat_n(' ', cell.column.saturating_sub(column)));
        text.push_str(&cell.text);
        column = end;
    }
    if window.cut_right {
        text.push_str(ellipsis);
    }
    screen.push(text.trim_end());
    screen.end();
}

fn write_mark(
    screen: &mut Screen<'_>,
    gutter: usize,
    status: Status,
    mark: &Mark<'_>,
    (from, to): (usize, usize),
) {
    let length = to.saturating_sub(from).max(1);
    let style = mark_style(status, mark.primary);
    let sign = if mark.primary { "^" } else { "-" };
    let label = mark
        .labels
        .iter()
        .filter(|label| !label.is_empty())
        .map(|label| screen.line(label))
        .collect::<Vec<_>>()
        .join("; ");
    bar(screen, gutter);
    screen.pad(1 + from);
    screen.paint(style, &sign.repeat(length));
    let start = gutter + 3;
    let beside = start + from + length + 1;
    let room = screen.width().saturating_sub(beside);
    if label.is_empty() {
        screen.end();
        return;
    }
    let fits = columns(&label) <= room;
    if fits || room >= LABEL_ROOM {
        for (index, line) in wrap(&label, room, room).iter().enumerate() {
            if index > 0 {
                bar(screen, gutter);
                screen.pad(1 + from + length);
            }
            screen.pad(1);
            screen.paint(style, line);
            screen.end();
        }
        return;
    }
    screen.end();
    let below = screen.width().saturating_sub(start + from);
    let (column, room) = if below >= LABEL_ROOM {
        (from, below)
    } else {
        (TAB, screen.width().saturating_sub(start + TAB))
    };
    for line in wrap(&label, room, room) {
        bar(screen, gutter);
        screen.pad(1 + column);
        screen.paint(style, &line);
        screen.end();
    }
}

fn mark_style(status: Status, primary: bool) -> Style {
    match (primary, status) {
        (false, _) => GUTTER,
        (true, Status::Ok | Status::Skipped) => DIM,
        (true, _) => status_style(status),
    }
}

/// A character as it is shown.
struct Cell {
    /// Byte offset in the line.
    byte: usize,
    column: usize,
    width: usize,
    text: String,
}

/// A line, laid out in columns.
struct Cells {
    cells: Vec<Cell>,
    total: usize,
}

/// The part of a line that is shown, in columns of the whole line.
struct Window {
    from: usize,
    text_from: usize,
    text_to: usize,
    cut_left: bool,
    cut_right: bool,
}

impl Cells {
    fn new(text: &str, ascii: bool) -> Self {
        let mut cells = Vec::with_capacity(text.len());
        let mut column = 0;
        for (byte, c) in text.char_indices() {
            let mut shown = String::new();
            let width = if c == '\t' {
                let width = TAB - column % TAB;
                shown.extend(std::iter::repeat_n(' ', width));
                width
            } else {
                escape::push(&mut shown, c, ascii);
                if shown.chars().eq([c]) {
                    c.width().unwrap_or(0)
                } else {
                    columns(&shown)
                }
            };
            cells.push(Cell {
                byte,
                column,
                width,
                text: shown,
            });
            column += width;
        }
        Self {
            cells,
            total: column,
        }
    }

    /// Columns of a range of bytes; a range outside the line is at its end, an empty one is one column.
    fn range(&self, from: usize, to: usize) -> (usize, usize) {
        let column_of = |byte: usize| {
            let after = self.cells.partition_point(|cell| cell.byte < byte);
            self.cells.get(after).map_or(self.total, |cell| cell.column)
        };
        let start = column_of(from);
        (start, column_of(to).max(start + 1))
    }

    /// What to show of the line in `room` columns so that the range is seen, with something before it.
    fn window(&self, (from, to): (usize, usize), room: usize, ellipsis: &str) -> Window {
        if self.total <= room {
            return Window {
                from: 0,
                text_from: 0,
                text_to: self.total,
                cut_left: false,
                cut_right: false,
            };
        }
        let dots = columns(ellipsis);
        let spare = room.saturating_sub(to.saturating_sub(from) + 2 * dots);
        // Two thirds of what is left over go before the mark: the key stands there.
        let before = (spare * 2 / 3).max(room / 5);
        let mut left = from.saturating_sub(before + dots).min(self.total - room);
        if left <= dots {
            left = 0;
        }
        let right = left + room;
        let cut_left = left > 0;
        let cut_right = right < self.total;
        Window {
            from: left,
            text_from: if cut_left { left + dots } else { 0 },
            text_to: if cut_right {
                right.saturating_sub(dots)
            } else {
                self.total
            },
            cut_left,
            cut_right,
        }
    }
}

impl Window {
    /// A range in columns of what is shown.
    fn shift(&self, (from, to): (usize, usize)) -> (usize, usize) {
        let from = from.clamp(self.text_from, self.text_to.max(self.text_from));
        let to = to.min(self.text_to).max(from + 1);
        (from - self.from, to - self.from)
    }
}
