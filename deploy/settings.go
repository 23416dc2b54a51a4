package deploy

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"weft"
)

// Settings are changes to the defaults of services' configurations, in the
// order in which they were made. A nil *Settings and the zero value change
// nothing.
type Settings struct {
	changes map[string][]change // by service
}

// change sets one value: that of the whole configuration if the path is empty,
// else that of one key in it.
type change struct {
	source string   // file, or the option that it came from
	line   int      // of the section's name; 0 if the source has no lines
	path   []string // of an option
	text   string   // the value of an option, not read yet
	value  ast.Node
}

// Add sets keys of one service from YAML; source says in errors where that
// comes from.
func (s *Settings) Add(service, source string, text []byte) error {
	value, err := parse(source, text)
	if err != nil || value == nil {
		return err
	}
	s.add(service, change{source: source, line: 1, value: value})
	return nil
}

// Set sets one key from an assignment service.key=value, as the option --set
// gives it. Keys of nested structures are separated by dots; the value is
// taken as it is where text is wanted, and is YAML elsewhere.
func (s *Settings) Set(assignment string) error {
	source := "--set " + assignment
	name, text, ok := strings.Cut(assignment, "=")
	path := strings.Split(name, ".")
	if !ok || len(path) < 2 || slices.Contains(path, "") {
		return fmt.Errorf("%s: want service.key=value, such as hosts.port_limit=8", source)
	}
	s.add(path[0], change{source: source, path: path[1:], text: text})
	return nil
}

// Services returns the names of the services that have settings, sorted.
func (s *Settings) Services() []string {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.changes))
}

func (s *Settings) add(service string, c change) {
	if s.changes == nil {
		s.changes = map[string][]change{}
	}
	s.changes[service] = append(s.changes[service], c)
}

// Check reports settings that do not fit the services that run, or are wrong,
// each on a line of its own.
func (s *Settings) Check(specs []weft.Spec) error { return s.check(specs) }

// check reports settings that do not fit the services that run.
func (s *Settings) check(specs []weft.Spec) error {
	if s == nil {
		return nil
	}
	var errs []error
	for _, name := range s.Services() {
		i := slices.IndexFunc(specs, func(sp weft.Spec) bool { return sp.Name == name })
		if i < 0 {
			c := s.changes[name][0]
			errs = append(errs, fmt.Errorf("%s: settings for %q, which is not among the services that run: %s%s", c.place(nil), name, orNone(specNames(specs)), meant(name, specNames(specs))))
			continue
		}
		_, err := s.configure(&specs[i])
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// configure returns a copy of the service's configuration with its changes
// made and validated.
func (s *Settings) configure(spec *weft.Spec) (any, error) {
	var changes []change
	if s != nil {
		changes = s.changes[spec.Name]
	}
	if spec.Config == nil {
		if len(changes) > 0 {
			return nil, fmt.Errorf("%s: service %s has nothing to configure; take its settings out", changes[0].place(nil), spec.Name)
		}
		return nil, nil
	}
	config := deepCopy(reflect.ValueOf(spec.Config))
	var errs []error
	for _, c := range changes {
		errs = append(errs, c.apply(spec.Name, config))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := config.Interface().(weft.Config).Validate(); err != nil {
		return nil, blame(spec.Name, changes, err)
	}
	return config.Interface(), nil
}

// apply makes the change in a configuration.
func (c *change) apply(service string, config reflect.Value) error {
	at, name := config.Elem(), service
	for _, key := range c.path {
		for at.Kind() == reflect.Pointer {
			if at.IsNil() {
				at.Set(reflect.New(at.Type().Elem()))
			}
			at = at.Elem()
		}
		keys, ok := structKeys(at.Type())
		if !ok {
			return fmt.Errorf("%s: %s has no keys below it", c.source, name)
		}
		field, ok := keys[key]
		if !ok {
			return fmt.Errorf("%s: unknown key %s.%s; allowed: %s%s", c.source, name, key, allowed(keys), meantKey(key, keys))
		}
		at, name = at.FieldByIndex(field.Index), name+"."+key
	}
	if len(c.path) > 0 {
		if at.Kind() == reflect.String && !readsItself(at.Type()) {
			at.SetString(c.text)
			return nil
		}
		value, err := parse(c.source, []byte(c.text))
		if err != nil {
			return fmt.Errorf("%s: %s: want %s, not %q", c.source, name, wanted(at.Type()), c.text)
		}
		if c.value = value; value == nil {
			return fmt.Errorf("%s: %s: no value; want %s", c.source, name, wanted(at.Type()))
		}
	}
	if errs := c.unknown(name, c.value, at.Type()); len(errs) > 0 {
		return errors.Join(append(errs, c.unreadable(name, c.value, at.Type())...)...)
	}
	if err := yaml.NodeToValue(c.value, at.Addr().Interface(), yaml.Strict()); err != nil {
		if errs := c.unreadable(name, c.value, at.Type()); len(errs) > 0 {
			return errors.Join(errs...)
		}
		return fmt.Errorf("%s: %s: %w", c.place(nil), name, err) // each value by itself is good
	}
	return nil
}

// place says where a node, or the change as a whole, is written.
func (c *change) place(n ast.Node) string {
	switch {
	case c.line == 0:
		return c.source
	case n == nil || n.GetToken() == nil:
		return fmt.Sprintf("%s:%d", c.source, c.line)
	}
	return fmt.Sprintf("%s:%d", c.source, n.GetToken().Position.Line)
}

// parse reads one YAML document; it is nil if there is nothing in it.
func parse(source string, text []byte) (ast.Node, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		if e := yaml.Error(nil); errors.As(err, &e) {
			return nil, fmt.Errorf("%s:%d: not well-formed YAML: %s", source, e.GetToken().Position.Line, e.GetMessage())
		}
		return nil, fmt.Errorf("%s: not well-formed YAML: %w", source, err)
	}
	switch {
	case len(file.Docs) == 0 || len(file.Docs) == 1 && file.Docs[0].Body == nil:
		return nil, nil
	case len(file.Docs) > 1:
		return nil, fmt.Errorf("%s: %d YAML documents; put everything into one (take out the lines ---)", source, len(file.Docs))
	}
	return file.Docs[0].Body, nil
}

func specNames(specs []weft.Spec) (names []string) {
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}
