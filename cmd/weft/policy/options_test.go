package policy

import (
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/weft-sdn/weft/api"
)

// TestOptions: whatever the options of the .proto files name is there: fields, forms, and
// functions of the command.
func TestOptions(t *testing.T) {
	value := regexp.MustCompile(`\{#?(@?)([\w.]+)(\|[^}]*)?\}`)
	check := func(d protoreflect.MessageDescriptor, template string) {
		for _, v := range value.FindAllStringSubmatch(template, -1) {
			if v[1] != "" {
				ownText(v[2], newMessage(d).Interface()) // panics if there is none
				continue
			}
			at := d
			for _, name := range strings.Split(v[2], ".") {
				f := at.Fields().ByName(protoreflect.Name(name))
				if f == nil {
					t.Errorf("%s: no field %s for %q", d.Name(), v[2], template)
					break
				}
				at = f.Message()
			}
		}
		_ = scope{Message: newMessage(d)}.expand(template) // an unknown form panics
	}
	tables, flags, commands := 0, 0, 0
	protoregistry.GlobalFiles.RangeFilesByPackage("weft.v1", func(f protoreflect.FileDescriptor) bool {
		for i := range f.Messages().Len() {
			d := f.Messages().Get(i)
			table := tableOf(d)
			for _, c := range columnsOf(d) {
				tables++
				check(d, c.template)
			}
			for _, template := range []string{table.GetName(), table.GetHead(), table.GetFoot()} {
				check(d, template)
			}
			for _, name := range []string{table.GetRows(), table.GetBelow()} {
				if name != "" && !d.Fields().ByName(protoreflect.Name(name)).IsList() {
					t.Errorf("%s: %s is no list", d.Name(), name)
				}
			}
			for j := range d.Fields().Len() {
				if flag := flagOf(d.Fields().Get(j)); flag.GetForm() != "" {
					flags++
					checkForm(d.Fields().Get(j), flag)
				}
			}
		}
		for i := range f.Services().Len() {
			for j := range f.Services().Get(i).Methods().Len() {
				m := f.Services().Get(i).Methods().Get(j)
				help := helpOf(m)
				if help == nil {
					continue
				}
				commands++
				check(m.Input(), help.Deletes)
				check(m.Input(), help.None)
				check(m.Output(), help.Done)
				check(m.Output(), help.Dry)
				if help.Short == "" || help.Example == "" {
					t.Errorf("%s: no help, or no example", m.Name())
				}
			}
		}
		return true
	})
	if tables < 100 || flags < 20 || commands < 40 {
		t.Errorf("only %d columns, %d forms, %d commands", tables, flags, commands)
	}
}

// checkForm panics if the form of a flag is not known.
func checkForm(f protoreflect.FieldDescriptor, flag *api.Flag) {
	switch form := strings.TrimSpace(strings.TrimPrefix(flag.Form, "list")); form {
	case "rate", "us", "uint16": // are types of flags
	default:
		_ = readForm(form, "flag", newMessage(f.ContainingMessage()), f, []string{"1"})
	}
}

// TestExpand: what templates write.
func TestExpand(t *testing.T) {
	nat := scope{Message: (&api.NatGateway{Name: "a", Inside: []string{"x", "y"}, Port: 2, Forwards: []*api.NatForward{{To: "10.0.0.1"}, {To: "10.0.0.2"}}}).ProtoReflect()}
	for template, want := range map[string]string{
		"": "", "text": "text", "{name}": "a", "{dpid}/{port}": "/2", "{inside}": "x y", "{#forwards}": "2", "{forwards.to}": "10.0.0.1 10.0.0.2",
		"{name}[: {reason}]": "a", "{name}[ in {inside}]!": "a in x y!", "[{name} {reason}]": "", "{hosts}": "0", "{hosts|or none}": "none", "{port|or none}": "2",
	} {
		if got := nat.expand(template); got != want {
			t.Errorf("%s: %q, want %q", template, got, want)
		}
	}
}
