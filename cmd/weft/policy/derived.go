package policy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

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
			parent.AddCommand(derivedCommand(m, last))
		}
	}
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

// derivedCommand makes the command of one method.
func derivedCommand(m api.AnyMethod, word string) *cobra.Command {
	var r cli.Remote
	var set []func(protoreflect.Message, []string) error
	q, _ := m.NewMessages()
	request := q.(proto.Message).ProtoReflect()
	form, within := request.Descriptor(), protoreflect.FieldDescriptor(nil)
	if fields := form.Fields(); fields.Len() == 1 && fields.Get(0).Message() != nil && !fields.Get(0).IsList() && !fields.Get(0).IsMap() {
		within = fields.Get(0)
		form = within.Message()
	}
	docs := openAPI()
	summary, _, _ := strings.Cut(docs.summary(m.MethodName()), "\n")
	cmd := &cobra.Command{Use: word, Short: strings.TrimSuffix(summary, "."), Long: docs.summary(m.MethodName()), Args: cobra.NoArgs}
	for i := range form.Fields().Len() {
		f := form.Fields().Get(i)
		if f.Name() == "name" && f.Kind() == protoreflect.StringKind && !f.IsList() {
			cmd.Use, cmd.Args = word+" NAME", cobra.ExactArgs(1)
			set = append(set, func(to protoreflect.Message, args []string) error {
				to.Set(f, protoreflect.ValueOfString(args[0]))
				return nil
			})
			continue
		}
		set = append(set, fieldFlag(cmd, f, docs.field(f)))
	}
	r.Flags(cmd)
	return cli.Query(&r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		q, a := m.NewMessages()
		request, answer := q.(proto.Message), a.(proto.Message)
		to := request.ProtoReflect()
		if within != nil {
			to = to.Mutable(within).Message()
		}
		for _, s := range set {
			if err := s(to, args); err != nil {
				return cli.View{}, cli.Usagef(cmd, "%v", err)
			}
		}
		service, name, _ := strings.Cut(m.MethodName(), ".")
		err := c.Invoke(c.Ctx, fmt.Sprintf("/weft.v1.%s/%s", strings.ToUpper(service[:1])+service[1:], name), request, answer)
		return cli.View{Value: answer, Text: func(t *cli.Table) { derivedTable(t, answer.ProtoReflect()) }}, err
	})
}

// fieldFlag adds the flag of a field, and returns what puts its value into a
// message. A number, a truth value and a text are as they are, an element of an
// enumeration is its name; a message is JSON, and so is a map.
func fieldFlag(cmd *cobra.Command, f protoreflect.FieldDescriptor, help string) func(protoreflect.Message, []string) error {
	name := strings.ReplaceAll(string(f.Name()), "_", "-")
	plain := f.Message() == nil && !f.IsMap()
	switch {
	case f.IsList() && plain:
		list := cmd.Flags().StringSlice(name, nil, help)
		return func(to protoreflect.Message, _ []string) error {
			return fill(to, f, name, jsonList(f, *list), cmd.Flags().Changed(name))
		}
	case f.Kind() == protoreflect.BoolKind && !f.IsList():
		v := cmd.Flags().Bool(name, false, help)
		return func(to protoreflect.Message, _ []string) error {
			return fill(to, f, name, fmt.Sprint(*v), cmd.Flags().Changed(name))
		}
	case plain:
		v := cmd.Flags().String(name, "", help)
		return func(to protoreflect.Message, _ []string) error {
			return fill(to, f, name, jsonOf(*v), cmd.Flags().Changed(name))
		}
	}
	v := cmd.Flags().String(name, "", help+" (JSON)")
	return func(to protoreflect.Message, _ []string) error {
		return fill(to, f, name, *v, cmd.Flags().Changed(name))
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

// fill reads JSON into one field.
func fill(to protoreflect.Message, f protoreflect.FieldDescriptor, flag, text string, given bool) error {
	if !given {
		return nil
	}
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

// derivedTable writes an answer for people: its plain fields, a line each, and a
// table of each list of messages.
func derivedTable(t *cli.Table, m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		switch f := fields.Get(i); {
		case f.IsList() && f.Message() != nil:
			columns := plainFields(f.Message())
			head := make([]any, len(columns))
			for i, c := range columns {
				head[i] = strings.ToUpper(string(c.Name()))
			}
			t.Row(head...)
			list := m.Get(f).List()
			for k := range list.Len() {
				cells := make([]any, len(columns))
				for i, c := range columns {
					cells[i] = cell(list.Get(k).Message(), c)
				}
				t.Row(cells...)
			}
		case f.Message() == nil:
			t.Row(string(f.Name()), cell(m, f))
		}
	}
}

// plainFields are the fields of a message that fit into a cell.
func plainFields(d protoreflect.MessageDescriptor) (list []protoreflect.FieldDescriptor) {
	for i := range d.Fields().Len() {
		if f := d.Fields().Get(i); f.Message() == nil {
			list = append(list, f)
		}
	}
	return list
}

func cell(m protoreflect.Message, f protoreflect.FieldDescriptor) string {
	switch v := m.Get(f); {
	case f.IsList():
		var words []string
		for i := range v.List().Len() {
			words = append(words, v.List().Get(i).String())
		}
		return strings.Join(words, " ")
	case f.Enum() != nil:
		return string(f.Enum().Values().ByNumber(v.Enum()).Name())
	default:
		return v.String()
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
