package policy

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
	"github.com/weft-sdn/weft/flow"
)

// setTexts sets a field to a text, or appends texts to a list.
func setTexts(to protoreflect.Message, f protoreflect.FieldDescriptor, texts []string) error {
	for _, text := range texts {
		if f.IsList() {
			to.Mutable(f).List().Append(protoreflect.ValueOfString(text))
		} else {
			to.Set(f, protoreflect.ValueOfString(text))
		}
	}
	return nil
}

// readSwitch reads a DPID.
func readSwitch(to protoreflect.Message, f protoreflect.FieldDescriptor, texts []string) error {
	sw, err := cli.SwitchText(texts[0])
	if err != nil {
		return err
	}
	return setTexts(to, f, []string{sw})
}

// readSwitches reads DPIDs into a list.
func readSwitches(flag string, to protoreflect.Message, f protoreflect.FieldDescriptor, texts []string) error {
	for _, text := range texts {
		sw, link, err := get.ParseElement(text)
		if err != nil || link != nil {
			return fmt.Errorf("--%s %.80q: want a switch", flag, text)
		}
		_ = setTexts(to, f, []string{sw}) // always nil
	}
	return nil
}

// readMatch reads a match of header fields; in the form protocols it may name protocols, as
// ovs-ofctl does.
func readMatch(form, flag string, to protoreflect.Message, f protoreflect.FieldDescriptor, texts []string) error {
	text := strings.Join(texts, ",")
	if form == "protocols" {
		text = cli.WithProtocols(text)
	}
	match, err := flow.ParseMatchString(text)
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	setMap(to, f, match.Text())
	return nil
}

// readFields reads FIELD=VALUE,...; what is wrong with the values the controller says.
func readFields(flag string, to protoreflect.Message, f protoreflect.FieldDescriptor, texts []string) error {
	fields, err := splitFields(texts)
	if err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	setMap(to, f, fields)
	return nil
}

// splitFields reads FIELD=VALUE,... where ports may be ranges; what is wrong
// with the values the controller says.
func splitFields(list []string) (map[string]string, error) {
	m := map[string]string{}
	for _, item := range strings.FieldsFunc(strings.Join(list, ","), func(r rune) bool { return r == ',' || r == ' ' }) {
		name, value, ok := strings.Cut(item, "=")
		if _, twice := m[name]; !ok || twice {
			return nil, fmt.Errorf("%q: want FIELD=VALUE, each field once, such as tcp_dst=1024-65535", item)
		}
		m[name] = value
	}
	return m, nil
}

func setMap(to protoreflect.Message, f protoreflect.FieldDescriptor, values map[string]string) {
	for key, value := range values {
		to.Mutable(f).Map().Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(value))
	}
}

// readEach appends to a list a message for each text. The error that read returns says
// what is wanted.
func readEach[M proto.Message](flag string, to protoreflect.Message, f protoreflect.FieldDescriptor, texts []string, read func(text string) (M, error)) error {
	for _, text := range texts {
		m, err := read(text)
		if err != nil {
			return fmt.Errorf("--%s %w", flag, err)
		}
		to.Mutable(f).List().Append(protoreflect.ValueOfMessage(m.ProtoReflect()))
	}
	return nil
}
