package policy

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// What the .proto files cannot say of commands and objects is found here, by name.

// ownText writes what templates call {@name}.
func ownText(name string, m proto.Message) string {
	switch name {
	}
	panic("no text " + name)
}

// readForm sets a field to what texts say in a form. Errors name the flag, if it is one.
func readForm(form, flag string, to protoreflect.Message, f protoreflect.FieldDescriptor, texts []string) error {
	switch form {
	case "dpid":
		return readSwitch(to, f, texts)
	case "match", "protocols":
		return readMatch(form, flag, to, f, texts)
	case "fields":
		return readFields(flag, to, f, texts)
	case "switches":
		return readSwitches(flag, to, f, texts)
	}
	return setTexts(to, f, texts)
}
