//! The formats of an exported journal.

use std::io::{self, Write};

use core_suite::accounting::{Currency, JournalLine, Turnover};
use serde::Serialize;

use crate::config::JournalFormat;

/// A row of the CSV file. The names of its fields are the columns.
#[derive(Default, Serialize)]
struct CsvRow<'a> {
    date: &'a str,
    entry: &'a str,
    account: &'a str,
    currency: &'a str,
    debit: u128,
    credit: u128,
    reference: &'a str,
}

/// The columns of the CSV file. They are written before the first row, because a journal may have none.
const COLUMNS: [&str; 7] = [
    "date",
    "entry",
    "account",
    "currency",
    "debit",
    "credit",
    "reference",
];

/// The first value of a line with the sums of a currency.
const TRIAL_BALANCE: &str = "trial_balance";

/// A JSON object of a posting or of the sums of a currency. Fields that do not apply are absent.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum JsonLine<'a> {
    Posting {
        date: &'a str,
        entry: &'a str,
        event: &'a str,
        account: &'a str,
        currency: &'a str,
        debit: u64,
        credit: u64,
        reference: &'a str,
    },
    TrialBalance {
        currency: &'a str,
        debit: i128,
        credit: i128,
    },
}

/// Writes the lines of a journal in a format.
pub(crate) enum JournalWriter<W: Write> {
    Csv(Box<csv::Writer<W>>),
    Jsonl(W),
}

impl<W: Write> JournalWriter<W> {
    /// Creates a writer. Writes the header of the format.
    pub(crate) fn new(format: JournalFormat, output: W) -> io::Result<Self> {
        match format {
            JournalFormat::Jsonl => Ok(Self::Jsonl(output)),
            JournalFormat::Csv => {
                let mut options = csv::WriterBuilder::new();
                let mut writer = options.has_headers(false).from_writer(output);
                writer.write_record(COLUMNS)?;
                Ok(Self::Csv(Box::new(writer)))
            }
        }
    }

    /// Writes a posting.
    pub(crate) fn write_line(&mut self, line: &JournalLine) -> io::Result<()> {
        let (date, account) = (line.date.to_string(), line.account.to_string());
        let (date, account) = (date.as_str(), account.as_str());
        let (entry, reference) = (line.entry.as_str(), line.reference.as_str());
        let currency = &line.currency.code();
        let (debit, credit) = (line.debit, line.credit);
        match self {
            Self::Csv(writer) => Ok(writer.serialize(CsvRow {
                date,
                entry,
                account,
                currency,
                debit: debit.into(),
                credit: credit.into(),
                reference,
            })?),
            Self::Jsonl(output) => {
                let event = line.event.as_str();
                let posting = JsonLine::Posting {
                    date,
                    entry,
                    event,
                    account,
                    currency,
                    debit,
                    credit,
                    reference,
                };
                write_json(output, &posting)
            }
        }
    }

    /// Writes the sums of a currency.
    pub(crate) fn write_trial_balance(
        &mut self,
        currency: Currency,
        sums: Turnover,
    ) -> io::Result<()> {
        let currency = &currency.code();
        match self {
            Self::Csv(writer) => Ok(writer.serialize(CsvRow {
                date: TRIAL_BALANCE,
                currency,
                debit: sums.debit.unsigned_abs(),
                credit: sums.credit.unsigned_abs(),
                ..CsvRow::default()
            })?),
            Self::Jsonl(output) => {
                let (debit, credit) = (sums.debit, sums.credit);
                let sums = JsonLine::TrialBalance {
                    currency,
                    debit,
                    credit,
                };
                write_json(output, &sums)
            }
        }
    }

    /// Flushes the output.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Csv(mut writer) => writer.flush(),
            Self::Jsonl(mut output) => output.flush(),
        }
    }
}

fn write_json(output: &mut impl Write, line: &JsonLine<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *output, line)?;
    output.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use core_suite::accounting::{Account, EntryKind, JournalEntryId, JournalLineAccount};

    use super::*;

    fn text_of(format: JournalFormat, lines: &[JournalLine]) -> String {
        let mut output = Vec::new();
        let mut writer = JournalWriter::new(format, &mut output).unwrap();
        for line in lines {
            writer.write_line(line).unwrap();
        }
        let sums = Turnover {
            debit: 2_900,
            credit: 2_900,
        };
        writer.write_trial_balance(Currency::USD, sums).unwrap();
        writer.finish().unwrap();
        String::from_utf8(output).unwrap()
    }

    /// A line whose reference contains what CSV and JSON must escape.
    fn line() -> JournalLine {
        JournalLine {
            date: "2027-01-31".parse().unwrap(),
            entry: JournalEntryId::parse(ENTRY).unwrap(),
            event: EntryKind::InvoicePaid,
            account: JournalLineAccount {
                account: Account::Cash,
                customer_id: None,
            },
            currency: Currency::USD,
            debit: 2_900,
            credit: 0,
            reference: "a \"b\", c\nd".to_owned(),
        }
    }

    const ENTRY: &str = "0192f3ab-7c20-7d3e-9b4a-5f6c7d8e9f01";

    #[test]
    fn csv_quotes_what_contains_separators() {
        let expected = format!(
            "date,entry,account,currency,debit,credit,reference\n\
             2027-01-31,{ENTRY},cash,usd,2900,0,\"a \"\"b\"\", c\nd\"\n\
             trial_balance,,,usd,2900,2900,\n"
        );
        assert_eq!(text_of(JournalFormat::Csv, &[line()]), expected);
        let mut reader = csv::Reader::from_reader(expected.as_bytes());
        let first = reader.records().next().unwrap().unwrap();
        assert_eq!(&first[6], "a \"b\", c\nd");
    }

    #[test]
    fn a_json_line_is_an_object_with_its_type() {
        let expected = format!(
            "{{\"type\":\"posting\",\"date\":\"2027-01-31\",\"entry\":\"{ENTRY}\",\"event\":\"invoice_paid\",\
             \"account\":\"cash\",\"currency\":\"usd\",\"debit\":2900,\"credit\":0,\
             \"reference\":\"a \\\"b\\\", c\\nd\"}}\n\
             {{\"type\":\"trial_balance\",\"currency\":\"usd\",\"debit\":2900,\"credit\":2900}}\n"
        );
        assert_eq!(text_of(JournalFormat::Jsonl, &[line()]), expected);
    }
}
