//! From the parser's events to documents.

use granit_parser::{ErrorKind as Found, Event, Options, Parser, ScanError, Span};

use crate::builder::{Builder, Refusal, byte};
use crate::error::{ErrorKind, SyntaxError};
use crate::lines::{count_breaks, count_characters};
use crate::messages;
use crate::tree::{Document, NONE, Shape};

/// How large a stream may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Mappings and sequences inside each other.
    pub max_depth: u32,
    /// Nodes of one document, with mappings and sequences counted twice; each takes 12 bytes.
    pub max_nodes: u32,
    /// Documents of the stream, broken ones included.
    pub max_documents: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_depth: 1000,
            max_nodes: 64_000_000,
            max_documents: 1_000_000,
        }
    }
}

/// One document of a stream.
#[derive(Debug)]
pub enum Parsed<'s> {
    /// A whole document.
    Document(Document<'s>),
    /// A broken document.
    Broken {
        /// Why and where.
        error: SyntaxError,
        /// What comes before the error, with all open mappings and sequences closed there.
        partial: Option<Document<'s>>,
    },
}

/// A whole stream.
#[derive(Debug, Default)]
pub struct Stream<'s> {
    /// The documents without errors, in order.
    pub documents: Vec<Document<'s>>,
    /// One error for each broken document, in order.
    pub errors: Vec<SyntaxError>,
    /// What comes before the errors of broken documents; see [`Parsed::Broken`].
    pub partials: Vec<Document<'s>>,
}

/// Parses a stream. One broken document does not hide the others.
pub fn parse<'s>(source: &'s str, limits: &Limits) -> Stream<'s> {
    let mut stream = Stream::default();
    parse_each(source, limits, &mut |parsed| match parsed {
        Parsed::Document(document) => stream.documents.push(document),
        Parsed::Broken { error, partial } => {
            stream.errors.push(error);
            stream.partials.extend(partial);
        }
    });
    stream
}

/// Parses a stream and hands over each document as soon as it is complete, so that memory is
/// bounded by the largest one. Documents with nothing but comments are left out.
pub fn parse_each<'s>(source: &'s str, limits: &Limits, each: &mut dyn FnMut(Parsed<'s>)) {
    let reader = Reader {
        source,
        limits,
        each,
        finished: None,
        current: None,
        next_index: 0,
        boundary: 0,
        counted: (0, 0),
    };
    reader.run();
}

struct Reader<'s, 'c> {
    source: &'s str,
    limits: &'c Limits,
    each: &'c mut dyn FnMut(Parsed<'s>),
    /// Complete, but where its range ends is known only when something follows.
    finished: Option<Document<'s>>,
    current: Option<Builder<'s>>,
    next_index: usize,
    /// Where the range of the last document handed over ends.
    boundary: u32,
    /// An offset and the line breaks before it. Documents and errors come in order, so each part
    /// of the text is counted once.
    counted: (u32, u32),
}

impl<'s> Reader<'s, '_> {
    fn run(mut self) {
        let end = match u32::try_from(self.source.len()) {
            Ok(end) if end < NONE => end,
            _ => {
                let refusal = Refusal {
                    kind: ErrorKind::TooLarge,
                    message: "found a text of 4 GiB or more, expected less".to_owned(),
                };
                return self.fail(0, refusal);
            }
        };
        // The builder reports the exact limit; the parser's own is for what it keeps itself.
        let depth = (self.limits.max_depth as usize).saturating_add(1);
        let mut options: Options = granit_parser::options! {
            emit_anchor_events: true,
            emit_unresolved_aliases: true,
            // As Kubernetes' decoder does, so that the value is what the cluster sees.
            block_scalar_eof_without_line_feed: true,
            flow_nesting_limit: depth,
            block_nesting_limit: depth,
        };
        // Comments are found between the nodes when somebody asks for them.
        options.set_emit_comments(false);
        let mut parser = Parser::new_from_str_with_options(self.source, options);
        let mut last_failure = None;
        loop {
            let (offset, refusal) = match parser.next_event() {
                None => break,
                Some(Ok((event, span))) => match self.event(event, &span) {
                    Ok(()) => continue,
                    Err(refusal) => (byte(span.start.byte_offset()), refusal),
                },
                Some(Err(error)) => self.judge(&error),
            };
            let stop = refusal.kind == ErrorKind::TooManyDocuments;
            self.fail(offset, refusal);
            // An error at the place of the last one would mean that recovery does not get on.
            let stuck = last_failure.replace(offset) == Some(offset);
            if stop || stuck || !parser.proceed_next_document().unwrap_or(false) {
                break;
            }
        }
        self.flush(end);
    }

    fn event(&mut self, event: Event<'s>, span: &Span) -> Result<(), Refusal> {
        match event {
            Event::DocumentStart(..) => return self.start(byte(span.start.byte_offset())),
            Event::DocumentEnd => {
                self.end();
                return Ok(());
            }
            _ => {}
        }
        let Some(builder) = &mut self.current else {
            return Ok(());
        };
        match event {
            Event::Scalar(value, style, _, tag) => {
                builder.scalar(&value, style, tag.as_deref(), span)
            }
            Event::MappingStart(style, _, tag) => {
                builder.open(Shape::Mapping, style, tag.is_some(), span)?;
                self.release();
                Ok(())
            }
            Event::SequenceStart(style, _, tag) => {
                builder.open(Shape::Sequence, style, tag.is_some(), span)?;
                self.release();
                Ok(())
            }
            Event::MappingEnd | Event::SequenceEnd => {
                builder.close_last(span);
                Ok(())
            }
            Event::Alias(anchor) => builder.alias(Some(anchor), span),
            Event::UnresolvedAlias(_) => builder.alias(None, span),
            Event::Anchor(number, _) => {
                builder.anchor(number, span);
                Ok(())
            }
            // Comments are off, and the ends of the stream say nothing.
            _ => Ok(()),
        }
    }

    fn start(&mut self, offset: u32) -> Result<(), Refusal> {
        if self.next_index >= self.limits.max_documents as usize {
            return Err(Refusal {
                kind: ErrorKind::TooManyDocuments,
                message: format!(
                    "found more than {} documents, expected no more",
                    self.limits.max_documents
                ),
            });
        }
        let line = self.line(offset);
        let document = Document::new(self.source, self.next_index, offset, line);
        self.current = Some(Builder::new(document, self.limits));
        Ok(())
    }

    fn end(&mut self) {
        let Some(builder) = self.current.take() else {
            return;
        };
        let start = builder.start();
        if let Some(document) = builder.finish() {
            self.flush(start);
            self.next_index += 1;
            self.finished = Some(document);
        }
    }

    /// Hands over the finished document now that the current one is known to be more than empty.
    fn release(&mut self) {
        if self.finished.is_some() {
            let start = self.current.as_ref().map(Builder::start);
            self.flush(start.unwrap_or(self.boundary));
        }
    }

    /// Hands over the finished document; its range ends here.
    fn flush(&mut self, end: u32) {
        if let Some(mut document) = self.finished.take() {
            document.range = self.boundary..end.max(self.boundary);
            self.boundary = document.range.end;
            (self.each)(Parsed::Document(document));
        }
    }

    fn fail(&mut self, offset: u32, refusal: Refusal) {
        let builder = self.current.take();
        self.flush(builder.as_ref().map_or(offset, Builder::start));
        let mut partial = builder.and_then(Builder::finish);
        if let Some(document) = &mut partial {
            document.range = self.boundary..offset.max(self.boundary);
            self.boundary = document.range.end;
        }
        let error = SyntaxError {
            line: self.line(offset),
            column: self.column(offset),
            offset,
            kind: refusal.kind,
            message: refusal.message,
            document_index: self.next_index,
        };
        self.next_index += 1;
        (self.each)(Parsed::Broken { error, partial });
    }

    /// Where a parser error is for a reader, and what it means.
    fn judge(&self, error: &ScanError) -> (u32, Refusal) {
        let offset = byte(error.marker().byte_offset()).min(byte(Some(self.source.len())));
        let (kind, message) = messages::describe(error, self.character(offset));
        let block = !self.current.as_ref().is_some_and(Builder::in_flow);
        // A line that starts with a tab often reads as the continuation of the one before, and
        // only what follows makes no sense.
        let tab = match error.kind() {
            // Located at the start of the value.
            Found::TabInPlainScalar => self.tab_in_next_lines(offset),
            Found::MappingValueNotAllowed
            | Found::SimpleKeyExpected
            | Found::InvalidIndentation
            | Found::ExpectedBlockMappingKey
            | Found::ExpectedBlockSequenceEntry
                if block =>
            {
                self.tab_in_indentation(self.line_start(offset))
            }
            _ if kind == ErrorKind::Tab => self.tab_in_indentation(self.line_start(offset)),
            _ => None,
        };
        if let Some(tab) = tab {
            let refusal = Refusal {
                kind: ErrorKind::Tab,
                message: messages::tab(),
            };
            return (tab, refusal);
        }
        (offset, Refusal { kind, message })
    }

    /// The first tab in the indentation of any line after an offset.
    fn tab_in_next_lines(&self, offset: u32) -> Option<u32> {
        let mut at = offset as usize;
        loop {
            let rest = self.source.get(at..)?;
            at += rest.find('\n')? + 1;
            if let Some(tab) = self.tab_in_indentation(at) {
                return Some(tab);
            }
        }
    }

    /// The first tab in the white space at the start of a line.
    fn tab_in_indentation(&self, start: usize) -> Option<u32> {
        let line = self.source.get(start..)?;
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        let tab = line.get(..blank)?.find('\t')?;
        u32::try_from(start + tab).ok()
    }

    fn character(&self, offset: u32) -> Option<char> {
        self.source.get(offset as usize..)?.chars().next()
    }

    fn line_start(&self, offset: u32) -> usize {
        let before = self.source.get(..offset as usize).unwrap_or("");
        before.rfind('\n').map_or(0, |at| at + 1)
    }

    fn line(&mut self, offset: u32) -> u32 {
        let bytes = self.source.as_bytes();
        let (from, lines) = self.counted;
        let between = |low: u32, high: u32| {
            count_breaks(bytes.get(low as usize..high as usize).unwrap_or_default())
        };
        let lines = if offset >= from {
            lines.saturating_add(between(from, offset))
        } else {
            lines.saturating_sub(between(offset, from))
        };
        self.counted = (offset, lines);
        lines.saturating_add(1)
    }

    fn column(&self, offset: u32) -> u32 {
        let line = self.line_start(offset)..offset as usize;
        let before = self.source.as_bytes().get(line).unwrap_or_default();
        count_characters(before).saturating_add(1)
    }
}
