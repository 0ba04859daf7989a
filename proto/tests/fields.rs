//! Tests that the names, numbers and types of message fields do not change.

#![allow(clippy::unwrap_used)]

use hatebeam_proto::v1;
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use std::fmt::Write;

fn add_field(field: &FieldDescriptorProto, text: &mut String) {
    let kind = match field.r#type() {
        Type::Message | Type::Enum => {
            let name = field.type_name();
            name.trim_start_matches(".hatebeam.v1.").to_owned()
        }
        scalar => scalar.as_str_name()["TYPE_".len()..].to_lowercase(),
    };
    let label = match field.label() {
        Label::Repeated => "repeated ",
        _ if field.proto3_optional() => "optional ",
        _ => "",
    };
    let (name, number) = (field.name(), field.number());
    writeln!(text, "  {number} {name}: {label}{kind}").unwrap();
}

fn add_message(outer: &str, message: &DescriptorProto, text: &mut String) {
    let name = format!("{outer}{}", message.name());
    writeln!(text, "message {name}").unwrap();
    for field in &message.field {
        add_field(field, text);
    }
    for nested in &message.nested_type {
        add_message(&format!("{name}."), nested, text);
    }
}

/// Describes all services, messages and enumerations, with one line for each method, field and value.
fn describe(files: &FileDescriptorSet) -> String {
    let mut text = String::new();
    for file in files
        .file
        .iter()
        .filter(|file| file.package() == "hatebeam.v1")
    {
        for service in &file.service {
            writeln!(text, "service {}", service.name()).unwrap();
            for method in &service.method {
                let name = |full: &str| full.trim_start_matches(".hatebeam.v1.").to_owned();
                let stream = |is: bool| if is { "stream " } else { "" };
                let input = format!(
                    "{}{}",
                    stream(method.client_streaming()),
                    name(method.input_type())
                );
                let output = format!(
                    "{}{}",
                    stream(method.server_streaming()),
                    name(method.output_type())
                );
                writeln!(text, "  {}({input}): {output}", method.name()).unwrap();
            }
        }
        for message in &file.message_type {
            add_message("", message, &mut text);
        }
        for enumeration in &file.enum_type {
            writeln!(text, "enum {}", enumeration.name()).unwrap();
            for value in &enumeration.value {
                writeln!(text, "  {} {}", value.number(), value.name()).unwrap();
            }
        }
    }
    text
}

/// `fields.txt` describes the interface `hatebeam.v1`. Existing lines must not change, because programs of
/// other versions rely on them. A new field, message or service requires a new line.
#[test]
fn interface_matches_fields_file() {
    let files = FileDescriptorSet::decode(v1::FILES).unwrap();
    let found = describe(&files);
    let expected = include_str!("fields.txt");
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected, "the interface differs from fields.txt");
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}
