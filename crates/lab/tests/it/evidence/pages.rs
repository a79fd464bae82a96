//! Markdown pages and their tables.

/// Least share of numbers among the cells of a table of results.
const NUMBERS: f64 = 0.4;

/// A page, as a list of lines and tables.
#[derive(Clone, Debug)]
pub struct Page {
    lines: Vec<Line>,
}

#[derive(Clone, PartialEq, Debug)]
enum Line {
    Text(String),
    Table(Table),
}

/// A table: its header as on the page, the line below it, and the cells of each row.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    header: String,
    rule: String,
    /// The cells by row, without the spaces around them.
    pub rows: Vec<Vec<String>>,
}

impl Page {
    /// Parses the text of a page.
    pub fn read(text: &str) -> Page {
        let mut lines = Vec::new();
        let mut rest = text.lines().peekable();
        let mut is_code = false;
        while let Some(line) = rest.next() {
            is_code ^= line.starts_with("```");
            let is_header =
                !is_code && line.starts_with('|') && rest.peek().is_some_and(|next| next.starts_with("|--"));
            if !is_header {
                lines.push(Line::Text(line.to_owned()));
                continue;
            }
            let rule = rest.next().unwrap_or_default().to_owned();
            let mut rows = Vec::new();
            while let Some(row) = rest.next_if(|line| line.starts_with('|')) {
                rows.push(cells(row));
            }
            lines.push(Line::Table(Table { header: line.to_owned(), rule, rows }));
        }
        Page { lines }
    }

    /// The text of the page.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            match line {
                Line::Text(line) => text += &format!("{line}\n"),
                Line::Table(table) => {
                    text += &format!("{}\n{}\n", table.header, table.rule);
                    table.rows.iter().for_each(|row| text += &line_of(row));
                }
            }
        }
        text
    }

    /// True if the page contains `words` outside of its tables.
    pub fn has(&self, words: &str) -> bool {
        self.lines.iter().any(|line| matches!(line, Line::Text(text) if text.contains(words)))
    }

    /// True if the section of the table with this header contains `words` outside of its tables.
    pub fn section_has(&self, header: &str, words: &str) -> bool {
        let is_heading = |line: &Line| matches!(line, Line::Text(text) if text.starts_with('#'));
        let is_table = |line: &Line| matches!(line, Line::Table(table) if table.header == header);
        let says = |line: &Line| matches!(line, Line::Text(text) if text.contains(words));
        let mut sections = self.lines.split(is_heading).filter(|section| section.iter().any(is_table));
        sections.any(|section| section.iter().any(says))
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        self.lines.iter().filter_map(|line| match line {
            Line::Table(table) => Some(table),
            Line::Text(_) => None,
        })
    }

    /// Headers of all tables.
    pub fn headers(&self) -> impl Iterator<Item = &str> {
        self.tables().map(|table| table.header.as_str())
    }

    /// Headers of the tables that consist mostly of numbers.
    pub fn headers_of_results(&self) -> Vec<&str> {
        self.tables().filter(|table| table.is_of_results()).map(|table| table.header.as_str()).collect()
    }

    /// The table with this header. If several tables have the same header, `HEADER #2` is the
    /// second.
    pub fn table(&mut self, header: &str) -> Result<&mut Table, String> {
        let (header, number) = match header.rsplit_once(" #") {
            Some((header, number)) => (header, number.parse::<usize>().map_err(|_| header.to_owned())?),
            None => (header, 1),
        };
        let tables = self.lines.iter_mut().filter_map(|line| match line {
            Line::Table(table) if table.header == header => Some(table),
            _ => None,
        });
        tables.into_iter().nth(number - 1).ok_or_else(|| format!("there is no table {number} with the header {header}"))
    }
}

impl Table {
    /// True if the cells, without the first of each row, are mostly numbers.
    fn is_of_results(&self) -> bool {
        let cells = || self.rows.iter().flat_map(|row| row.iter().skip(1));
        let numbers = cells().filter(|cell| is_number(cell)).count();
        numbers >= 4 && numbers as f64 >= NUMBERS * cells().count() as f64
    }
}

/// True if a cell begins with a number and has few other words.
fn is_number(cell: &str) -> bool {
    cell.starts_with(|letter: char| letter.is_ascii_digit()) && cell.split_whitespace().count() <= 8
}

/// A row in the format of a page. An empty cell has one space.
fn line_of(row: &[String]) -> String {
    let cell = |cell: &String| if cell.is_empty() { " |".to_owned() } else { format!(" {cell} |") };
    format!("|{}\n", row.iter().map(cell).collect::<String>())
}

fn cells(row: &str) -> Vec<String> {
    let inner = row.trim().trim_start_matches('|');
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn a_page_is_what_it_was_and_its_tables_are_found() {
    let text = "# A\n\n| hops | a | b |\n|---|---|---|\n| x | 1 | 2.0 ± 0.1 |\n| | 2 | |\n| y | 3 | 4 |\n\n```\n| no | table |\n|---|---|\n```\n\n| hops | a | b |\n|---|---|---|\n| z | words | more |\n";
    let mut page = Page::read(text);
    assert_eq!(page.text(), text);
    assert_eq!(page.headers_of_results(), ["| hops | a | b |"]);
    assert_eq!(page.table("| hops | a | b | #2").unwrap().rows[0][0], "z");
    page.table("| hops | a | b |").unwrap().rows[2][1] = "5".to_owned();
    assert_eq!(page.text(), text.replace("| y | 3", "| y | 5"));
    let parts = Page::read("## A\nx\n\n| a |\n|---|\n| 1 |\n\ny\n## B\nz\n");
    assert_eq!(["x", "y", "z"].map(|words| parts.section_has("| a |", words)), [true, true, false]);
    assert!(page.table("| hops | c |").is_err() && page.has("# A") && !page.has("words"));
}
