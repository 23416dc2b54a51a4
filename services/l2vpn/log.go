package l2vpn

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Who changes circuits, as their histories say.
const (
	client  = "client" // the audit log says which
	service = "l2vpn"
)

// changes returns what a client's change is of a circuit: the fields that differ, with what they were and are; old is
// nil if it is new.
func changes(old, now *circuit) string {
	if old == nil {
		return "added"
	}
	was, is := wanted(old.Circuit).ProtoReflect(), wanted(now.Circuit).ProtoReflect()
	var list []string
	fields := is.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); !was.Get(f).Equal(is.Get(f)) {
			list = append(list, fmt.Sprintf("%s: %s, now %s", f.Name(), fieldText(was, f), fieldText(is, f)))
		}
	}
	return strings.Join(list, "; ")
}

// fieldText returns a field of what clients want, which are all numbers, texts and lists of texts.
func fieldText(m protoreflect.Message, f protoreflect.FieldDescriptor) string {
	v := m.Get(f)
	if !f.IsList() {
		if text := v.String(); text != "" {
			return text
		}
		return "none"
	}
	var list []string
	for i := range v.List().Len() {
		list = append(list, v.List().Get(i).String())
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, " ")
}
