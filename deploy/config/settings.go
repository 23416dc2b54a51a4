// Package config reads and keeps the configurations of services. It checks that
// services fit together, gives each service its own settings, compares two
// configurations and says which services take the difference live, and keeps the
// history of configurations.
//
// Package deploy and the commands that start a controller import it.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/internal/document"
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
	value  document.Value
}

// Add sets keys of one service from YAML; source says in errors where that
// comes from.
func (s *Settings) Add(service, source string, text []byte) error {
	value, err := parse(source, text)
	if err != nil || value.Kind == document.Null {
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
func (s *Settings) Check(specs []weft.Spec) error {
	if s == nil {
		return nil
	}
	var errs []error
	for _, name := range s.Services() {
		i := slices.IndexFunc(specs, func(sp weft.Spec) bool { return sp.Name == name })
		if i < 0 {
			c := s.changes[name][0]
			errs = append(errs, fmt.Errorf("%s: settings for %q, which is not among the services that run: %s%s", c.place(0), name, OrNone(Names(specs)), document.Meant(name, Names(specs))))
			continue
		}
		_, err := s.Configure(&specs[i])
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Configure returns a copy of the service's configuration with its changes
// made and validated.
func (s *Settings) Configure(spec *weft.Spec) (any, error) {
	config, err := s.changed(spec)
	if config == nil {
		return nil, err
	}
	if err := errors.Join(append([]error{err}, validate(spec, s.of(spec), reflect.ValueOf(config))...)...); err != nil {
		return nil, err
	}
	return config, nil
}

// of returns the changes to a service's configuration.
func (s *Settings) of(spec *weft.Spec) []change {
	if s == nil {
		return nil
	}
	return s.changes[spec.Name]
}

// changed returns a copy of the service's configuration with its changes made
// as far as they can be, nil if it has none.
func (s *Settings) changed(spec *weft.Spec) (weft.Config, error) {
	changes := s.of(spec)
	if spec.Config == nil {
		if len(changes) > 0 {
			return nil, fmt.Errorf("%s: service %s has nothing to configure; take its settings out", changes[0].place(0), spec.Name)
		}
		return nil, nil
	}
	config := deepCopy(reflect.ValueOf(spec.Config))
	var errs []error
	for _, c := range changes {
		errs = append(errs, c.apply(spec.Name, config))
	}
	return config.Interface().(weft.Config), errors.Join(errs...)
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
		if c.value = value; value.Kind == document.Null {
			return fmt.Errorf("%s: %s: no value; want %s", c.source, name, wanted(at.Type()))
		}
	}
	return errors.Join(c.read(name, c.value, at)...)
}

// place says where something is written, the change as a whole if its line is 0.
func (c *change) place(line int) string {
	if c.line == 0 {
		return c.source
	}
	return fmt.Sprintf("%s:%d", c.source, cmp.Or(line, c.line))
}

// parse reads one YAML document; it is Null if there is nothing in it.
func parse(source string, text []byte) (document.Value, error) {
	// What is set comes from files that plan has bounded; with its places kept it is longer.
	v, mistakes, _ := document.Read(text, document.Limits{What: "configuration", Octets: 4 << 20, Lines: 100_000})
	var errs []error
	for _, m := range mistakes {
		errs = append(errs, m.In(source))
	}
	return v, errors.Join(errs...)
}

// Names returns the names of services.
func Names(specs []weft.Spec) (names []string) {
	for _, s := range specs {
		names = append(names, s.Name)
	}
	return names
}
