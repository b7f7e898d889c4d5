//! Parsing of request bodies in JSON. A list cannot stand for an object, `1e3` is an integer, and
//! errors name the field.

use super::problem::Problem;
use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Error;
use std::fmt;

/// Integers up to this value are exact as floating-point numbers.
const EXACT: f64 = (1_u64 << 53) as f64;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Natural(u64),
    Negative(i64),
    Real(f64),
    Text(String),
    List(Vec<Json>),
    /// Fields in order, including duplicates, which the reader must reject.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Parses a whole text.
    ///
    /// # Errors
    /// The invalid field and the error.
    pub(super) fn read(text: &[u8]) -> Result<Json, (String, Error)> {
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        let mut reader = serde_json::Deserializer::from_slice(text);
        let mut field = String::new();
        let read = Reading(&mut field).deserialize(&mut reader);
        let read = read.and_then(|json| reader.end().map(|()| json));
        read.map_err(|error| (field, error))
    }
}

/// Reads a body.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let json = Json::read(bytes);
    let json = json.map_err(|(field, error)| Problem::field(field, error.to_string()))?;
    serde_path_to_error::deserialize(json)
        .map_err(|error| Problem::field(error.path().to_string(), error.inner().to_string()))
}

/// Reads a value while tracking its field.
struct Reading<'a>(&'a mut String);

impl<'de> DeserializeSeed<'de> for Reading<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reading<'_> {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Natural(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Negative(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        let is_whole = value.fract() == 0.0 && value.abs() < EXACT;
        Ok(match is_whole {
            true if value >= 0.0 => Json::Natural(value as u64),
            true => Json::Negative(value as i64),
            false => Json::Real(value),
        })
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let (mut list, outside) = (Vec::new(), self.0.len());
        loop {
            self.0.push_str(&format!("[{}]", list.len()));
            let item = items.next_element_seed(Reading(self.0))?;
            self.0.truncate(outside);
            match item {
                Some(item) => list.push(item),
                None => return Ok(Json::List(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json, A::Error> {
        let (mut object, outside) = (Vec::new(), self.0.len());
        // Until the next key is read, the tracked field is the previous one.
        while let Some(name) = fields.next_key::<String>()? {
            self.0.truncate(outside);
            if outside > 0 {
                self.0.push('.');
            }
            self.0.push_str(&name);
            object.push((name, fields.next_value_seed(Reading(self.0))?));
        }
        self.0.truncate(outside);
        Ok(Json::Object(object))
    }
}

impl<'de> Deserializer<'de> for Json {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Json::Null => visitor.visit_unit(),
            Json::Bool(value) => visitor.visit_bool(value),
            Json::Natural(value) => visitor.visit_u64(value),
            Json::Negative(value) => visitor.visit_i64(value),
            Json::Real(value) => visitor.visit_f64(value),
            Json::Text(value) => visitor.visit_string(value),
            Json::List(items) => visitor.visit_seq(SeqDeserializer::new(items.into_iter())),
            Json::Object(fields) => visitor.visit_map(MapDeserializer::new(fields.into_iter())),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Json::Null => visitor.visit_none(),
            value => visitor.visit_some(value),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Json::Object(_) => self.deserialize_any(visitor),
            _ => Err(Error::custom("an object is needed, as in {\"name\": …}")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            Json::Text(text) => text
                .into_deserializer()
                .deserialize_enum(name, variants, visitor),
            // A variant with a value, as in {"centipawns": 31}.
            Json::Object(fields) if fields.len() == 1 => {
                let fields = MapDeserializer::new(fields.into_iter());
                MapAccessDeserializer::new(fields).deserialize_enum(name, variants, visitor)
            }
            _ => Err(Error::custom(format!(
                "one of `{}` is needed",
                variants.join("`, `")
            ))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct newtype_struct seq tuple tuple_struct map identifier ignored_any
    }
}

impl IntoDeserializer<'_, Error> for Json {
    type Deserializer = Json;

    fn into_deserializer(self) -> Json {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_told_with_its_field() {
        for (text, field) in [
            (r#"{"fen": }"#, "fen"),
            (r#"{"fen": "8/8"#, "fen"),
            (r#"{"elo": 12x}"#, "elo"),
            (r#"{"elo": 12 "seed": 3}"#, "elo"),
            (r#"{"limits": {"nodes": 5 "depth": 3}}"#, "limits.nodes"),
            (r#"{"limits": {"nodes": 5,}}"#, "limits.nodes"),
            (r#"{"limits": {"nodes" 5}}"#, "limits.nodes"),
            (r#"{"elo": 1, "limits": {"nodes": }}"#, "limits.nodes"),
            (r#"{"moves": ["e4", e5]}"#, "moves[1]"),
            (r#"{"limits": {"moves": []}, "elo": 1} 7"#, ""),
            ("{", ""),
            ("", ""),
        ] {
            let (found, error) = Json::read(text.as_bytes()).unwrap_err();
            assert_eq!(found, field, "{text}: {error}");
        }
    }

    #[test]
    fn whole_numbers_are_integers_however_they_are_written() {
        for (text, number) in [
            ("1000", Json::Natural(1000)),
            ("1e3", Json::Natural(1000)),
            ("1000.0", Json::Natural(1000)),
            ("1.5e1", Json::Natural(15)),
            ("-0.0", Json::Natural(0)),
            ("-2.0", Json::Negative(-2)),
            ("0.5", Json::Real(0.5)),
            ("1e300", Json::Real(1e300)),
            ("18446744073709551615", Json::Natural(u64::MAX)),
            ("18446744073709551616", Json::Real(18446744073709551616.0)),
        ] {
            assert_eq!(Json::read(text.as_bytes()).unwrap(), number, "{text}");
        }
        assert_eq!(Json::read("\u{feff}null".as_bytes()).unwrap(), Json::Null);
    }
}
