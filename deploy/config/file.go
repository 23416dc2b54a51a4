package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/plan"
)

// maxFile is the largest configuration file, in octets.
const maxFile = 1 << 20

// File is the configuration of weft up:
//
//	services: [southbound, discovery, hosts]  # which to run; all if left out
//	pipeline: [discovery, hosts]              # order of the stages
//	hosts:                                    # one section per service
//	  port_limit: 8
type File struct {
	Path     string
	Services []string // empty: all
	Pipeline []string // empty: the default
	Settings *Settings
	Text     string         // of the file
	Document *plan.Document // that it is

	lines map[string]int // of the keys, and of names in lists as key.name
}

// Load reads a configuration file. Whether its sections fit the services
// is for Select and New to say, and for Check.
func Load(path string) (*File, error) {
	text, err := document.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: %d octets; a configuration has at most %d", path, len(text), maxFile)
	}
	f := &File{Path: path, Settings: &Settings{}, Text: string(text), lines: map[string]int{}}
	if f.Document, err = plan.ParseConfig(path, text); err != nil { // which bounds what the parser is given
		return nil, err
	}
	body, err := parse(path, text)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, e := range body.Entries {
		f.lines[e.Key] = e.Line
		switch e.Key {
		case "services":
			f.Services, err = f.names(e.Key, e.Value)
			if err == nil && len(f.Services) == 0 {
				err = fmt.Errorf("%s:%d: services: the list is empty; leave the key out to run all", path, e.Line)
			}
		case "pipeline":
			f.Pipeline, err = f.names(e.Key, e.Value)
		default:
			err = nil
			if e.Value.Kind != document.Null {
				f.Settings.add(e.Key, change{source: path, line: e.Line, value: e.Value})
			}
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return f, nil
}

// names reads a list of services' names.
func (f *File) names(key string, v document.Value) (names []string, err error) {
	if v.Kind != document.List {
		return nil, fmt.Errorf("%s:%d: %s: want a list of services, such as [discovery, hosts]", f.Path, v.Line, key)
	}
	var errs []error
	for _, item := range v.Items {
		switch {
		case item.Kind != document.Word:
			errs = append(errs, fmt.Errorf("%s:%d: %s: want the name of a service, not %s", f.Path, item.Line, key, item.Short()))
		case slices.Contains(names, item.Text):
			errs = append(errs, fmt.Errorf("%s:%d: %s: %s is listed twice; list it once", f.Path, item.Line, key, item.Text))
		default:
			names = append(names, item.Text)
			f.lines[key+"."+item.Text] = item.Line
		}
	}
	return names, errors.Join(errs...)
}

// Select returns those of the given services that the file says to run, in the
// given order.
func (f *File) Select(specs []weft.Spec) ([]weft.Spec, error) {
	var errs []error
	known := Names(specs)
	for _, name := range f.Services {
		if !slices.Contains(known, name) {
			errs = append(errs, fmt.Errorf("%s:%d: services: unknown service %q; allowed: %s", f.Path, f.lines["services."+name], name, OrNone(known)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(f.Services) == 0 {
		return specs, nil
	}
	return slices.DeleteFunc(slices.Clone(specs), func(s weft.Spec) bool { return !slices.Contains(f.Services, s.Name) }), nil
}

// Check reports everything that is wrong with a configuration file for the
// given services, without starting anything.
func Check(path string, specs []weft.Spec) error {
	f, err := Load(path)
	if err != nil {
		return err
	}
	return f.Check(specs)
}

// Check reports everything that is wrong with the configuration, and with
// settings added since, for the given services.
func (f *File) Check(specs []weft.Spec) error {
	chosen, err := f.Select(specs)
	if err != nil {
		return errors.Join(err, f.Settings.Check(specs))
	}
	_, order := Stages(chosen, f.Pipeline)
	return errors.Join(f.at("services", CheckSpecs(chosen)), f.at("pipeline", order), f.Settings.Check(chosen))
}

// at adds the line of a key to errors, if the file has the key.
func (f *File) at(key string, err error) error {
	if err == nil {
		return nil
	}
	place := f.Path
	if line, ok := f.lines[key]; ok {
		place = fmt.Sprintf("%s:%d", f.Path, line)
	}
	var errs []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		errs = append(errs, fmt.Errorf("%s: %s", place, line))
	}
	return errors.Join(errs...)
}
