//! The options of a script: those that it declares, and sysbench's own where they mean something here.

use crate::error::{Error, Fate, Result};
use crate::workload::options::{unknown, Circumstances};
use std::collections::BTreeMap;

/// The value of one option.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Setting {
    /// A text that was not given and has no default.
    Nothing,
    Flag(bool),
    Number(f64),
    Text(String),
    List(Vec<String>),
}

/// All options with their values, as `sysbench.opt` has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    values: BTreeMap<String, Setting>,
    /// Of a script that declares no options: what was given and sysbench's own, which become its global variables.
    pub globals: BTreeMap<String, Setting>,
}

/// sysbench's options that are taken here, with their defaults.
const TAKEN: &[(&str, Usual)] = &[
    ("db_debug", Usual::Flag),
    ("db_ps_mode", Usual::Text("auto")),
    ("debug", Usual::Flag),
    ("forced_shutdown", Usual::Text("off")),
    ("histogram", Usual::Flag),
    ("mysql_debug", Usual::Flag),
    ("mysql_ignore_errors", Usual::Text(MYSQL_IGNORED)),
    ("percentile", Usual::Number(95.0)),
    ("pgsql_ignore_errors", Usual::Text(PGSQL_IGNORED)),
    ("rand_pareto_h", Usual::Number(0.2)),
    ("rand_spec_iter", Usual::Number(12.0)),
    ("rand_spec_pct", Usual::Number(1.0)),
    ("rand_spec_res", Usual::Number(75.0)),
    ("rand_type", Usual::Text("special")),
    ("rand_zipfian_exp", Usual::Number(0.8)),
    ("report_interval", Usual::Number(0.0)),
    ("thread_init_timeout", Usual::Number(30.0)),
    ("validate", Usual::Flag),
    ("verbosity", Usual::Number(3.0)),
    ("warmup_time", Usual::Number(0.0)),
];

/// Errors after which an event is done again, unless told otherwise.
const MYSQL_IGNORED: &str = "1213,1020,1205";
const PGSQL_IGNORED: &str = "40P01,23505,40001";

/// sysbench's options that have another place here: how their names begin, and that place.
const ELSEWHERE: &[(&str, &str)] = &[
    ("threads", "the clients are its threads: --clients, or `clients` in a study"),
    ("events", "end the run after so many transactions with --operations"),
    ("time", "--time is an option of `dyno load run`; in a study it is `duration`"),
    ("rate", "--rate is an option of `dyno load run`; in a study it is `rate_per_s`"),
    ("rand_seed", "--seed is an option of `dyno load run`; in a study it is `seed`"),
    ("db_driver", "the driver is that of --url"),
    ("num_threads", "the clients are its threads: --clients, or `clients` in a study"),
    ("max_requests", "end the run after so many transactions with --operations"),
    ("max_time", "--time is an option of `dyno load run`; in a study it is `duration`"),
    ("tx_rate", "--rate is an option of `dyno load run`; in a study it is `rate_per_s`"),
    ("mysql_", "the server is that of --url"),
    ("pgsql_", "the server is that of --url"),
    ("report_checkpoints", "the tally has every second"),
];

/// Options of sysbench before 1.0 that begin as those of a server do, and are about the tables that a script makes.
const OF_TABLES: [&str; 3] = ["mysql_table_engine", "mysql_table_options", "mysql_engine_trx"];

/// What an option of sysbench is unless it is given.
enum Usual {
    Flag,
    Number(f64),
    Text(&'static str),
}

impl Settings {
    /// sysbench's own options, none of them given.
    pub fn of_sysbench() -> Self {
        let values = TAKEN.iter().map(|(name, usual)| {
            let value = match usual {
                Usual::Flag => Setting::Flag(false),
                Usual::Number(number) => Setting::Number(*number),
                Usual::Text(text) => Setting::Text((*text).to_owned()),
            };
            ((*name).to_owned(), value)
        });
        Settings { values: values.collect(), globals: BTreeMap::new() }
    }

    /// With what the job says in the place of sysbench's options.
    pub fn of_job(circumstances: &Circumstances) -> Self {
        let mut settings = Self::of_sysbench();
        let operations = circumstances.operations.unwrap_or(0);
        for (name, value) in [
            ("threads", f64::from(circumstances.clients)),
            ("events", operations as f64),
            ("time", circumstances.duration_s),
            ("rate", circumstances.rate_per_s),
            ("rand_seed", circumstances.seed as f64),
            // The same under the names of before 1.0.
            ("num_threads", f64::from(circumstances.clients)),
            ("max_requests", operations as f64),
            ("max_time", circumstances.duration_s),
            ("tx_rate", circumstances.rate_per_s),
        ] {
            settings.put(name, Setting::Number(value));
        }
        let driver = driver(circumstances);
        settings.put("db_driver", Setting::Text(driver.to_owned()));
        if let Some(target) = &circumstances.target {
            for (name, text) in [
                ("host", target.host.as_str()),
                ("user", target.user.as_str()),
                ("password", target.password.as_str()),
                ("db", target.database.as_str()),
                ("socket", target.parameter("socket").unwrap_or_default()),
            ] {
                settings.put(&format!("{driver}_{name}"), Setting::Text(text.to_owned()));
            }
            let port = target.port.map_or(Setting::Nothing, |port| Setting::Number(port.into()));
            settings.put(&format!("{driver}_port"), port);
        }
        settings
    }

    /// With the options that the script declares, and with what was given for options of both kinds.
    pub fn resolve(
        mut self,
        declared: BTreeMap<String, Setting>,
        given: &[(String, String)],
    ) -> Result<Self> {
        let legacy = declared.is_empty();
        for (name, text) in given {
            let taken = TAKEN.iter().any(|(known, _)| known == name);
            let own =
                declared.get(name).filter(|_| elsewhere(name).is_none() || !self.values.contains_key(name));
            let default = match (own, taken) {
                (Some(default), _) => default,
                (None, true) => &self.values[name],
                (None, false) => {
                    if legacy && OF_TABLES.contains(&name.as_str()) {
                        self.globals.insert(name.clone(), of_text(text));
                        continue;
                    }
                    if let Some(hint) = elsewhere(name) {
                        return Err(Error::user(format!("the option {name} is not the script's")).hint(hint));
                    }
                    if legacy {
                        self.globals.insert(name.clone(), of_text(text));
                        continue;
                    }
                    let names =
                        declared.keys().map(String::as_str).chain(TAKEN.iter().map(|(name, _)| *name));
                    return Err(unknown("option of the script", name, names));
                }
            };
            let value = default.parse(name, text)?;
            self.put(name, value);
        }
        if legacy {
            // A script that declares none finds sysbench's own options as global variables too.
            self.values.iter().for_each(|(name, value)| {
                self.globals.entry(name.clone()).or_insert_with(|| value.clone());
            });
        }
        for (name, default) in declared {
            // The script may have its own default for an option of sysbench's, but not for what the job says.
            let known = given.iter().any(|(other, _)| *other == name) || elsewhere(&name).is_some();
            if !known || !self.values.contains_key(&name) {
                self.values.insert(name, default);
            }
        }
        if self.text("db_ps_mode") != "auto" {
            return Err(Error::user("the option db_ps_mode can be nothing but auto").hint(
                "for statements as text, end the URL of a MySQL or MariaDB server with ?statements=text",
            ));
        }
        Ok(self)
    }

    pub fn values(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.values.get(name)
    }

    /// An option that is a text; empty for any other.
    pub fn text(&self, name: &str) -> &str {
        match self.values.get(name) {
            Some(Setting::Text(text)) => text,
            _ => "",
        }
    }

    /// An option that is a number; 0 for any other.
    pub fn number(&self, name: &str) -> f64 {
        match self.values.get(name) {
            Some(Setting::Number(number)) => *number,
            _ => 0.0,
        }
    }

    fn put(&mut self, name: &str, value: Setting) {
        self.values.insert(name.to_owned(), value);
    }
}

impl Setting {
    /// A text as a value of this default's type.
    pub fn parse(&self, name: &str, text: &str) -> Result<Self> {
        let wrong = |allowed: &str| {
            Error::user(format!("the option {name} cannot be {text:?}")).hint(format!("give {allowed}"))
        };
        match self {
            Setting::Flag(_) => match text.to_ascii_lowercase().as_str() {
                "on" | "true" | "yes" | "1" => Ok(Setting::Flag(true)),
                "off" | "false" | "no" | "0" => Ok(Setting::Flag(false)),
                _ => Err(wrong("on or off")),
            },
            Setting::Number(_) => match text.trim().parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Setting::Number(number)),
                _ => Err(wrong("a number")),
            },
            Setting::List(_) => Ok(Setting::List(text.split(',').map(|one| one.trim().to_owned()).collect())),
            Setting::Text(_) | Setting::Nothing => Ok(Setting::Text(text.to_owned())),
        }
    }
}

/// An option that is a number within limits.
pub(super) fn within(settings: &Settings, name: &str, least: f64, most: f64) -> Result<f64> {
    let value = settings.number(name);
    if (least..=most).contains(&value) {
        return Ok(value);
    }
    Err(Error::user(format!("the option {name} cannot be {value}"))
        .hint(format!("give a number of {least} to {most}")))
}

/// The name under which sysbench knows the driver of the job's server.
pub(super) fn driver(circumstances: &Circumstances) -> &'static str {
    match circumstances.target.as_ref().map(|target| target.protocol.as_str()) {
        Some("postgresql") => "pgsql",
        Some(name) => name,
        None => "mysql",
    }
}

/// Takes `name=value,name=value` apart. A part without `=` belongs to the value before it: `codes=1213,1205`.
pub(super) fn assignments(text: &str) -> Result<Vec<(String, String)>> {
    let mut given: Vec<(String, String)> = Vec::new();
    for part in text.split(',') {
        if let Some((name, value)) = part.split_once('=') {
            given.push((name.trim().replace('-', "_"), value.trim().to_owned()));
        } else if let Some((_, value)) = given.last_mut() {
            value.push(',');
            value.push_str(part.trim());
        } else if !part.trim().is_empty() {
            return Err(Error::user(format!("{part:?} sets no option of the script"))
                .hint("write variables=name=value,name=value"));
        }
    }
    Ok(given)
}

/// The value of an option that nobody declared: a number where it looks like one.
fn of_text(text: &str) -> Setting {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Setting::Number(number),
        _ => Setting::Text(text.to_owned()),
    }
}

fn elsewhere(name: &str) -> Option<&'static str> {
    let begins = |begin: &str| if begin.ends_with('_') { name.starts_with(begin) } else { name == begin };
    ELSEWHERE.iter().find(|(begin, _)| begins(begin)).map(|(_, hint)| *hint)
}

/// The errors after which an event is done again.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ignored {
    codes: Vec<String>,
    all: bool,
    /// Nobody chose: then a conflict is ignored whatever its code, since engines have codes that sysbench does not know.
    conflicts: bool,
}

impl Ignored {
    pub fn new(settings: &Settings) -> Self {
        let lists = [settings.text("mysql_ignore_errors"), settings.text("pgsql_ignore_errors")];
        let codes: Vec<String> =
            lists.iter().flat_map(|list| list.split(',')).map(|code| code.trim().to_owned()).collect();
        Ignored {
            all: codes.iter().any(|code| code == "all"),
            codes,
            conflicts: lists == [MYSQL_IGNORED, PGSQL_IGNORED],
        }
    }

    pub fn has(&self, error: &Error) -> bool {
        let code = error.code().to_string();
        self.all
            || (self.conflicts && error.fate() == Fate::Retry)
            || self.codes.iter().any(|ignored| *ignored == code && !code.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;
    use crate::session::Target;
    use proptest::prelude::*;

    fn declared() -> BTreeMap<String, Setting> {
        [
            ("table_size", Setting::Number(10_000.0)),
            ("skip_trx", Setting::Flag(false)),
            ("engine", Setting::Text("innodb".to_owned())),
            ("variant", Setting::Nothing),
            ("hosts", Setting::List(vec!["a".to_owned()])),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    fn resolve(variables: &str) -> Result<Settings> {
        Settings::of_sysbench().resolve(declared(), &assignments(variables)?)
    }

    #[test]
    fn a_value_has_the_type_of_its_default() {
        let settings =
            resolve("table-size=1000,skip_trx=on,engine=rocksdb,variant=redshift,hosts=a,b,c").unwrap();
        assert_eq!(settings.get("table_size"), Some(&Setting::Number(1000.0)));
        assert_eq!(settings.get("skip_trx"), Some(&Setting::Flag(true)));
        assert_eq!(settings.text("engine"), "rocksdb");
        assert_eq!(settings.text("variant"), "redshift");
        let hosts = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(settings.get("hosts"), Some(&Setting::List(hosts)));
    }

    #[test]
    fn what_was_not_given_has_its_default() {
        let settings = resolve("").unwrap();
        assert_eq!(settings.number("table_size"), 10_000.0);
        assert_eq!(settings.get("variant"), Some(&Setting::Nothing));
        assert_eq!((settings.text("rand_type"), settings.number("rand_spec_res")), ("special", 75.0));
    }

    #[test]
    fn mistakes_say_what_would_be_right() {
        for (variables, told) in [
            ("table_sizes=5", "did you mean table_size?"),
            ("table_size=many", "give a number"),
            ("skip_trx=perhaps", "give on or off"),
            ("threads=5", "--clients"),
            ("mysql_host=db", "--url"),
            ("db_ps_mode=disable", "?statements=text"),
            ("five", "variables=name=value"),
        ] {
            let error = resolve(variables).unwrap_err();
            assert!(error.hint_text().contains(told), "{variables}: {error}");
        }
    }

    #[test]
    fn a_script_may_declare_options_of_sysbench() {
        let declared = |name: &str, value| BTreeMap::from([(name.to_owned(), value)]);
        let job = Settings::of_job(&Circumstances { clients: 8, ..Circumstances::default() });
        let threads = job.clone().resolve(declared("threads", Setting::Number(2.0)), &[]).unwrap();
        assert_eq!(threads.number("threads"), 8.0);
        let engine = declared("mysql_storage_engine", Setting::Text("innodb".to_owned()));
        let given = assignments("mysql-storage-engine=rocksdb").unwrap();
        assert_eq!(job.clone().resolve(engine, &given).unwrap().text("mysql_storage_engine"), "rocksdb");
        let percentile = job.resolve(declared("percentile", Setting::Number(99.0)), &[]).unwrap();
        assert_eq!(percentile.number("percentile"), 99.0);
    }

    #[test]
    fn a_script_that_declares_nothing_gets_globals() {
        let given = assignments("oltp_table_size=100,engine=innodb").unwrap();
        let settings = Settings::of_sysbench().resolve(BTreeMap::new(), &given).unwrap();
        assert_eq!(settings.globals["oltp_table_size"], Setting::Number(100.0));
        assert_eq!(settings.globals["engine"], Setting::Text("innodb".to_owned()));
    }

    #[test]
    fn the_job_stands_in_the_place_of_sysbenchs_options() {
        let target = Target::parse("mysql://me@db:3307/shop").unwrap();
        let circumstances = Circumstances { target: Some(target), clients: 8, ..Circumstances::default() };
        let settings = Settings::of_job(&circumstances);
        assert_eq!((settings.number("threads"), settings.text("mysql_db")), (8.0, "shop"));
        assert_eq!((settings.text("db_driver"), settings.number("mysql_port")), ("mysql", 3307.0));
    }

    fn ignored(variables: &str) -> Ignored {
        Ignored::new(&resolve(variables).unwrap())
    }

    #[test]
    fn errors_are_ignored_by_their_code() {
        let refused = |code, fate| Error::refused(code, "words", fate, "refused");
        let usual = ignored("");
        for (code, fate, expected) in [
            (Code::Mysql(1213), Fate::Retry, true),
            (Code::State(*b"40P01"), Fate::Retry, true),
            (Code::Firebird(335_544_336), Fate::Retry, true),
            (Code::State(*b"23505"), Fate::Failed, true),
            (Code::Mysql(1062), Fate::Failed, false),
            (Code::Other, Fate::Failed, false),
        ] {
            assert_eq!(usual.has(&refused(code, fate)), expected, "{code}");
        }
        assert!(ignored("mysql_ignore_errors=all").has(&refused(Code::Mysql(1062), Fate::Failed)));
        let chosen = ignored("mysql_ignore_errors=1062,1205");
        assert!(chosen.has(&refused(Code::Mysql(1062), Fate::Failed)));
        assert!(!chosen.has(&refused(Code::Mysql(1213), Fate::Retry)));
    }

    proptest! {
        #[test]
        fn any_text_of_assignments_is_read_or_refused(text in ".{0,60}") {
            if let Ok(given) = assignments(&text) {
                let _ = Settings::of_sysbench().resolve(declared(), &given);
            }
        }
    }
}
