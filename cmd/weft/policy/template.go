package policy

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// scope is a message whose fields templates of the .proto files name (api.Table).
type scope struct {
	protoreflect.Message
	rows protoreflect.Name // the list field; row n of the table is its element n
	n    int
}

// expand writes a template.
func (s scope) expand(template string) string {
	text, _ := s.write(template)
	return text
}

// write writes a template, and reports whether all fields in it say something.
func (s scope) write(template string) (string, bool) {
	var b strings.Builder
	full := true
	for template != "" {
		i := strings.IndexAny(template, "{[")
		if i < 0 {
			b.WriteString(template)
			break
		}
		b.WriteString(template[:i])
		end := strings.IndexByte(template, map[byte]byte{'{': '}', '[': ']'}[template[i]])
		inner := template[i+1 : end]
		if template[i] == '{' {
			text, some := s.value(inner)
			b.WriteString(text)
			full = full && some
		} else if text, some := s.write(inner); some {
			b.WriteString(text)
		}
		template = template[end+1:]
	}
	return b.String(), full
}

// value writes what stands in braces, and reports whether it says something.
func (s scope) value(path string) (string, bool) {
	if name, own := strings.CutPrefix(path, "@"); own {
		text := ownText(name, s.Interface())
		return text, text != ""
	}
	path, form, _ := strings.Cut(path, "|")
	path, count := strings.CutPrefix(path, "#")
	var words []string
	some, n := false, 0
	s.walk(s.Message, strings.Split(path, "."), func(f protoreflect.FieldDescriptor, v protoreflect.Value, set bool) {
		words = append(words, formatValue(f, v, form))
		some, n = some || set, n+1
	})
	if word, given := strings.CutPrefix(form, "or "); given && !some {
		return word, true
	}
	if count {
		return fmt.Sprint(n), n > 0
	}
	return strings.Join(words, " "), some
}

// walk calls visit for each value of a path of fields.
func (s scope) walk(m protoreflect.Message, path []string, visit func(protoreflect.FieldDescriptor, protoreflect.Value, bool)) {
	f := m.Descriptor().Fields().ByName(protoreflect.Name(path[0]))
	each := func(v protoreflect.Value, set bool) {
		if len(path) == 1 {
			visit(f, v, set)
		} else {
			s.walk(v.Message(), path[1:], visit)
		}
	}
	switch {
	case f == nil: // of an element, where there is none
	case f.IsList() && s.rows == f.Name():
		each(m.Get(f).List().Get(s.n), true)
	case f.IsList():
		for i := range m.Get(f).List().Len() {
			each(m.Get(f).List().Get(i), true)
		}
	default:
		each(m.Get(f), m.Has(f))
	}
}

// formatValue writes a value as a cell of a table, in a form or that of its type.
func formatValue(f protoreflect.FieldDescriptor, v protoreflect.Value, form string) string {
	switch form {
	case "hex":
		return fmt.Sprintf("%#x", v.Uint())
	case "when":
		return cli.When(v.String())
	case "yes":
		return cli.Yes(v.Bool())
	case "rate":
		rate := cli.Bandwidth(v.Uint())
		return rate.String()
	case "vlan":
		return cli.Vlan(uint32(v.Uint()))
	case "port":
		return cli.Port(uint32(v.Uint()))
	}
	switch {
	case f.IsMap():
		match := map[string]string{}
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			match[k.String()] = v.String()
			return true
		})
		return cli.MatchText(match)
	case f.Enum() != nil:
		return string(f.Enum().Values().ByNumber(v.Enum()).Name())
	case f.Message() != nil:
		if at, ok := v.Message().Interface().(*api.Location); ok && at.GetPort() == 0 { // a switch
			return at.GetDpid()
		} else if ok {
			return cli.Place(at)
		}
	}
	return fmt.Sprint(v.Interface())
}
