package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestConfigurationTable holds docs/configuration.md to the Config of every
// service: keys and defaults as they are, descriptions from their comments.
func TestConfigurationTable(t *testing.T) {
	var b strings.Builder
	for _, s := range specs() {
		if s.Config == nil {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n| key | default | change | what it is |\n|---|---|---|---|\n", s.Name)
		v := reflect.ValueOf(s.Config).Elem()
		rows(t, &b, fieldComments(t, s.Name), v, "", func(key string) bool {
			return slices.ContainsFunc(s.Live, func(l string) bool { return l == "*" || l == key || strings.HasPrefix(key, l+".") })
		})
	}
	section(t, "docs/configuration.md", "keys", b.String()+"\n")
}

// rows writes the rows of a struct's fields; live says whether a running service
// takes over a key.
func rows(t *testing.T, b *strings.Builder, comments map[string]string, v reflect.Value, prefix string, live func(key string) bool) {
	t.Helper()
	typ := v.Type()
	last := ""
	for i := range typ.NumField() {
		f := typ.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if key == "" {
			t.Fatalf("%s.%s has no yaml tag", typ, f.Name)
		}
		if f.Type.Kind() == reflect.Struct {
			rows(t, b, comments, v.Field(i), prefix+key+".", live)
			continue
		}
		about := comments[typ.Name()+"."+f.Name]
		if about == "" {
			about = comments[typ.Name()]
		}
		if f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct {
			var keys []string
			for j := range f.Type.Elem().NumField() {
				e := f.Type.Elem().Field(j)
				keys = append(keys, fmt.Sprintf("`%s`: %s", e.Tag.Get("yaml"), comments[f.Type.Elem().Name()+"."+e.Name]))
			}
			about += " A list of: " + strings.Join(keys, " ")
		}
		if about == "" {
			t.Errorf("%s.%s has no comment", typ, f.Name)
		}
		if about == last {
			about = "See above."
		} else {
			last = about
		}
		change := "restart"
		switch {
		case f.Tag.Get("start") == "true":
			change = "start"
		case live(prefix + key):
			change = "live"
		}
		fmt.Fprintf(b, "| `%s%s` | %s | %s | %s |\n", prefix, key, inYAML(v.Field(i)), change, strings.ReplaceAll(about, "|", `\|`))
	}
}

// inYAML returns a value as one writes it in a configuration.
func inYAML(v reflect.Value) string {
	if v.Kind() == reflect.Slice {
		if v.Len() == 0 {
			return "none"
		}
		return fmt.Sprintf("`[%s]`", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(v.Interface())), ", "), "[]"))
	}
	if d, ok := v.Interface().(time.Duration); ok {
		s := d.String()
		if d >= time.Minute {
			s = strings.TrimSuffix(s, "0s")
		}
		if d >= time.Hour {
			s = strings.TrimSuffix(s, "0m")
		}
		return "`" + s + "`"
	}
	if (v.Kind() == reflect.String || v.Kind() == reflect.Map) && v.Len() == 0 {
		return "none"
	}
	return fmt.Sprintf("`%v`", v.Interface())
}

// fieldComments returns the comments of types and of their fields, by Type and
// Type.Field, of a service's config.go. Neighbours without a comment of their
// own share the one above them.
func fieldComments(t *testing.T, service string) map[string]string {
	t.Helper()
	name := filepath.Join(root, "services", service, "config.go")
	if _, err := os.Stat(name); os.IsNotExist(err) {
		name = filepath.Join(root, "policy", "config.go") // of a service that has none of its own
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range d.Specs {
			spec, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			st, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			comments[spec.Name.Name] = sentence(d.Doc.Text(), spec.Name.Name, "")
			above := ""
			for _, f := range st.Fields.List {
				if f.Doc == nil && above == "" {
					continue
				}
				for _, name := range f.Names {
					if text := f.Doc.Text(); text != "" {
						above = text
					}
					key := strings.Trim(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("yaml"), " ")
					comments[spec.Name.Name+"."+name.Name] = sentence(above, name.Name, key)
				}
			}
		}
	}
	return comments
}

// sentence makes of a Go comment a description: one line, without "Name is" in
// front.
func sentence(text, name, key string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, verb := range []string{" is ", " are ", " says ", " lists "} {
		if rest, ok := strings.CutPrefix(text, name+verb); ok && key != "" {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	if rest, ok := strings.CutPrefix(text, name+" "); ok && key != "" {
		return strings.ToUpper(rest[:1]) + rest[1:]
	}
	return text
}
