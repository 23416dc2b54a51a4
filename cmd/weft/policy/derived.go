package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// Derive adds a command for each method that names one in its .proto
// file and has none yet, so that a service has commands without a line here.
// Flags are the fields of the request, or of its message if it consists of one;
// a field called name is an argument.
func Derive(root *cobra.Command, methods []api.AnyMethod) {
	for _, m := range methods {
		words := strings.Fields(api.RulesOf(m.MethodName()).GetCommand())
		if len(words) == 0 {
			continue
		}
		parent := root
		for _, word := range words[:len(words)-1] {
			parent = subcommand(parent, word)
		}
		if parent.DisableFlagParsing { // it is another program's
			continue
		}
		last := words[len(words)-1]
		if !slices.ContainsFunc(parent.Commands(), func(c *cobra.Command) bool { return c.Name() == last }) {
			var r cli.Remote
			cmd := methodCommand(&r, descriptorOf(m), nil, last)
			r.Flags(cmd)
			parent.AddCommand(cmd)
		}
	}
}

// descriptorOf returns what the .proto file says of a method.
func descriptorOf(m api.AnyMethod) protoreflect.MethodDescriptor {
	service, name, _ := strings.Cut(m.MethodName(), ".")
	full := "weft.v1." + strings.ToUpper(service[:1]) + service[1:] + "." + name
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(full))
	if err != nil {
		panic(err) // it has a command, which is said there
	}
	return d.(protoreflect.MethodDescriptor)
}

// subcommand returns the command below parent that a word names, a new one if
// there is none.
func subcommand(parent *cobra.Command, word string) *cobra.Command {
	for _, c := range parent.Commands() {
		if c.Name() == word || slices.Contains(c.Aliases, word) {
			return c
		}
	}
	c := &cobra.Command{Use: word, Short: "Ask the service " + word}
	if parent.ContainsGroup("talk") {
		c.GroupID = "talk"
	}
	parent.AddCommand(c)
	return c
}

// plainHelp returns the help of a method of whose command the .proto file says nothing: its
// comment. A field called name is an argument.
func plainHelp(m protoreflect.MethodDescriptor) *api.CommandHelp {
	text := openAPI().summary(api.MethodName(m))
	short, _, _ := strings.Cut(text, "\n")
	help := &api.CommandHelp{Short: strings.TrimSuffix(short, "."), Long: text}
	if _, d := plainFields(m.Input()); d.Fields().ByName("name") != nil {
		help.Args = "NAME"
	}
	return help
}

// plainFields returns the message whose fields are flags: a request, or that which it consists
// of, with the way there.
func plainFields(d protoreflect.MessageDescriptor) ([]protoreflect.FieldDescriptor, protoreflect.MessageDescriptor) {
	if f := d.Fields(); f.Len() == 1 && f.Get(0).Message() != nil && !f.Get(0).IsList() && !f.Get(0).IsMap() {
		return []protoreflect.FieldDescriptor{f.Get(0)}, f.Get(0).Message()
	}
	return nil, d
}

// addPlain adds a flag for each field of a request whose method has no flag options in the
// .proto file. Numbers, booleans and strings are written as usual, enumeration values by
// name, messages and maps as JSON.
func (f *form) addPlain(request protoreflect.MessageDescriptor) {
	path, d := plainFields(request)
	for i := range d.Fields().Len() {
		field := d.Fields().Get(i)
		name, help := strings.ReplaceAll(string(field.Name()), "_", "-"), openAPI().field(field)
		var text func() string // JSON
		switch plain, flags := field.Message() == nil, f.cmd.Flags(); {
		case name == "name" && plain && !field.IsList():
			continue
		case plain && field.IsList():
			v := flags.StringSlice(name, nil, help)
			text = func() string { return jsonList(field, *v) }
		case plain && field.Kind() == protoreflect.BoolKind:
			v := flags.Bool(name, false, help)
			text = func() string { return fmt.Sprint(*v) }
		case plain:
			v := flags.String(name, "", help)
			text = func() string { return jsonOf(*v) }
		default:
			v := flags.String(name, "", help+" (JSON)")
			text = func() string { return *v }
		}
		f.inputs = append(f.inputs, input{path: path, flag: name, optional: true,
			put: func(to protoreflect.Message) error { return setJSON(to, field, name, text()) }})
	}
}

// jsonOf writes a value of a flag as JSON of a field.
func jsonOf(v string) string {
	b, _ := json.Marshal(v) // a string always has JSON; numbers may be written as one
	return string(b)
}

func jsonList(f protoreflect.FieldDescriptor, list []string) string {
	if f.Kind() == protoreflect.BoolKind {
		return "[" + strings.Join(list, ",") + "]"
	}
	b, _ := json.Marshal(list)
	return string(b)
}

// setJSON reads JSON into one field.
func setJSON(to protoreflect.Message, f protoreflect.FieldDescriptor, flag, text string) error {
	one := to.New()
	if err := protojson.Unmarshal([]byte(`{"`+string(f.Name())+`":`+text+`}`), one.Interface()); err != nil {
		return fmt.Errorf("--%s %s: want %s", flag, text, wanted(f))
	}
	to.Set(f, one.Get(f))
	return nil
}

// wanted says what a field takes.
func wanted(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Message() != nil:
		return "JSON of " + string(f.Message().Name())
	case f.Enum() != nil:
		var names []string
		for i := range f.Enum().Values().Len() {
			names = append(names, string(f.Enum().Values().Get(i).Name()))
		}
		return strings.Join(names, ", ")
	}
	return f.Kind().String()
}

// writePlain writes an answer that has no table option in the .proto file: a line for each
// plain field, and a table for each list of messages.
func writePlain(t *cli.Table, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		switch f := fields.Get(i); {
		case f.IsList() && f.Message() != nil:
			writeTable(t, f.Message(), messagesOf(m.Get(f).List()))
		case f.Message() == nil:
			t.Row(string(f.Name()), scope{Message: m}.expand("{"+string(f.Name())+"}"))
		}
	}
}

// apiDocs is what the OpenAPI document says of methods and fields: the comments
// of the .proto files.
type apiDocs struct {
	Paths map[string]map[string]struct {
		Summary, Description string
		OperationID          string `json:"operationId"`
	}
	Definitions map[string]struct {
		Properties map[string]struct{ Title, Description string }
	}
}

var openAPI = sync.OnceValue(func() (docs apiDocs) {
	if text, err := api.OpenAPI(); err == nil {
		_ = json.Unmarshal(text, &docs) // help may be missing
	}
	return docs
})

// summary returns the comment of a method.
func (d apiDocs) summary(method string) string {
	for _, path := range d.Paths {
		for _, op := range path {
			if service, name, _ := strings.Cut(op.OperationID, "_"); strings.EqualFold(service+"."+name, method) {
				return strings.TrimSpace(op.Summary + "\n" + op.Description)
			}
		}
	}
	return method
}

// field returns the first sentence of the comment of a field.
func (d apiDocs) field(f protoreflect.FieldDescriptor) string {
	p := d.Definitions["v1"+string(f.Parent().Name())].Properties[f.JSONName()]
	text := strings.Join(strings.Fields(p.Title+" "+p.Description), " ")
	first, _, _ := strings.Cut(text, ". ")
	return strings.TrimSuffix(first, ".")
}
