package docs

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/weft-sdn/weft/api"
)

// apiReference returns the reference of the API, made from the .proto files, the
// paths of HTTP, and the commands: every method that clients may call, and every
// message that goes with one.
func apiReference(t *testing.T) string {
	t.Helper()
	comments, paths := protoComments(t), httpPaths(t)
	files := []protoreflect.FileDescriptor{}
	protoregistry.GlobalFiles.RangeFilesByPackage("weft.v1", func(f protoreflect.FileDescriptor) bool {
		files = append(files, f)
		return true
	})
	slices.SortFunc(files, func(a, b protoreflect.FileDescriptor) int { return strings.Compare(a.Path(), b.Path()) })

	var b strings.Builder
	b.WriteString(`# Reference of the API

Made from the .proto files in ` + "`api/`" + ` by ` + "`make reference`" + `. The same methods are gRPC and JSON over HTTP, on one port;
` + "`/openapi.json`" + ` is the description for programs. In JSON, 64-bit integers are strings. A method without a path is
gRPC only; those of ` + machineServices() + ` are HTTP only. ROLE is what the caller's token needs ([tokens and roles](../guide/security.md#tokens-and-roles)).
The commands have [a reference of their own](commands.md).
`)
	needed := map[protoreflect.FullName]protoreflect.MessageDescriptor{}
	for _, f := range files {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			var table strings.Builder
			for j := range s.Methods().Len() {
				m := s.Methods().Get(j)
				rules := api.RulesOf(api.MethodName(m))
				if rules.GetRole() == api.Role_ROLE_UNSPECIFIED {
					continue // between services only
				}
				role, command := strings.ToLower(strings.TrimPrefix(rules.GetRole().String(), "ROLE_")), ""
				if c := rules.GetCommand(); c != "" {
					first, _, _ := strings.Cut(c, " ")
					command = fmt.Sprintf("[%s](%s.md)", c, first)
				}
				need(needed, m.Input())
				need(needed, m.Output())
				http := strings.Join(paths[string(s.Name())+"_"+string(m.Name())], "<br>")
				fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s | %s |\n", m.Name(), http, command, messageLink(m.Input()), messageLink(m.Output()), role, cell(comments[string(s.Name())+"."+string(m.Name())]))
			}
			if table.Len() > 0 {
				fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| method | HTTP | weft | takes | answers | role | what it does |\n|---|---|---|---|---|---|---|\n%s", s.Name(), cell(comments[string(s.Name())]), table.String())
			}
		}
	}
	b.WriteString("\n## Messages\n")
	var names []protoreflect.FullName
	for name := range needed {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, full := range names {
		m := needed[full]
		fmt.Fprintf(&b, "\n### %s\n", m.Name())
		if c := comments[string(m.Name())]; c != "" {
			fmt.Fprintf(&b, "\n%s\n", cell(c))
		}
		if m.Fields().Len() == 0 {
			b.WriteString("\nIt has no fields.\n")
			continue
		}
		b.WriteString("\n| field | type | what it is |\n|---|---|---|\n")
		for i := range m.Fields().Len() {
			f := m.Fields().Get(i)
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name(), fieldType(f), cell(comments[string(m.Name())+"."+string(f.Name())]))
		}
	}
	return b.String()
}

// machineServices names the services that machines offer.
func machineServices() string {
	var names []string
	for _, s := range api.MachineServices() {
		names = append(names, string(s.Name()))
	}
	return strings.Join(names, " and ")
}

// need adds a message of the API and all that are in it.
func need(all map[protoreflect.FullName]protoreflect.MessageDescriptor, m protoreflect.MessageDescriptor) {
	if m == nil || m.IsMapEntry() || all[m.FullName()] != nil || m.ParentFile().Package() != "weft.v1" {
		return
	}
	all[m.FullName()] = m
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if f.IsMap() {
			f = f.MapValue()
		}
		need(all, f.Message())
	}
}

func messageLink(m protoreflect.MessageDescriptor) string {
	if m.ParentFile().Package() != "weft.v1" {
		return string(m.FullName())
	}
	return fmt.Sprintf("[%s](#%s)", m.Name(), strings.ToLower(string(m.Name())))
}

func fieldType(f protoreflect.FieldDescriptor) string {
	one := func(f protoreflect.FieldDescriptor) string {
		if f.Message() != nil {
			return messageLink(f.Message())
		}
		return f.Kind().String()
	}
	switch {
	case f.IsMap():
		return fmt.Sprintf("map of %s to %s", one(f.MapKey()), one(f.MapValue()))
	case f.IsList():
		return "list of " + one(f)
	case f.HasOptionalKeyword():
		return one(f) + ", may be left out"
	}
	return one(f)
}

// cell makes of a comment one line of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`).Replace(strings.Join(strings.Fields(text), " "))
}

var (
	protoBlock = regexp.MustCompile(`^(message|service|enum|oneof|extend)\s+(\w+)\s*\{(\s*\})?`)
	protoRPC   = regexp.MustCompile(`^rpc\s+(\w+)\s*\(`)
	protoValue = regexp.MustCompile(`^([A-Z][A-Z0-9_]*)\s*=\s*\d+`)
	protoField = regexp.MustCompile(`^(?:(?:repeated|optional)\s+)?(?:map<[^>]*>|[\w.]+)\s+(\w+)\s*=\s*\d+`)
)

// protoComments returns the comments of the .proto files: of messages, services,
// their fields (Message.field) and methods (Service.Method).
func protoComments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "api/*.proto"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d .proto files: %v", len(files), err)
	}
	comments := map[string]string{}
	for _, file := range files {
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		var inside []string // blocks; a oneof is no name of its own
		above := ""
		for line := range strings.SplitSeq(read(t, name), "\n") {
			line, behind, _ := strings.Cut(strings.TrimSpace(line), "//")
			line = strings.TrimSpace(line)
			if line == "" && behind != "" {
				above += strings.TrimSpace(behind) + "\n"
				continue
			}
			key := ""
			switch m := protoBlock.FindStringSubmatch(line); {
			case m != nil && m[1] == "oneof":
				inside = append(inside, inside[len(inside)-1])
			case m != nil:
				comments[m[2]] = above
				if m[3] == "" {
					inside = append(inside, m[2])
				}
			case strings.HasPrefix(line, "}") && len(inside) > 0:
				inside = inside[:len(inside)-1]
			case len(inside) == 0:
			default:
				if m := protoRPC.FindStringSubmatch(line); m != nil {
					key = m[1]
				} else if m := protoField.FindStringSubmatch(line); m != nil {
					key = m[1]
				} else if m := protoValue.FindStringSubmatch(line); m != nil {
					key = m[1]
				}
			}
			if key != "" {
				comments[inside[len(inside)-1]+"."+key] = strings.TrimSpace(above + strings.TrimSpace(behind))
			}
			above = ""
			if strings.HasSuffix(line, "{") && (strings.HasPrefix(line, "rpc ") || strings.HasPrefix(line, "option (")) { // its options
				inside = append(inside, inside[len(inside)-1])
			}
		}
	}
	return comments
}

// httpPaths returns the methods of HTTP and paths of the API's methods, by
// Service_Method.
func httpPaths(t *testing.T) map[string][]string {
	t.Helper()
	text, err := api.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	paths := map[string][]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			id := regexp.MustCompile(`\d+$`).ReplaceAllString(op.OperationID, "") // further paths are numbered
			paths[id] = append(paths[id], fmt.Sprintf("`%s %s`", strings.ToUpper(method), path))
		}
	}
	for _, list := range paths {
		slices.Sort(list)
	}
	return paths
}
