package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/plan"
)

// Keys of configurations that name a program, a file or a directory have the
// tag start:"true". Keys that name addresses have start:"file", because an
// address may be a file. Only a file, a plan or --set may set them, at start: anyone who
// could set them through the northbound could choose what the controller's user
// runs, reads and removes.

// startTag returns the tag start of a key or of a key above it; empty if there
// is none.
func startTag(t reflect.Type, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		keys, ok := structKeys(t)
		if !ok {
			return ""
		}
		f, ok := keys[name]
		if !ok {
			return ""
		}
		if tag := f.Tag.Get("start"); tag != "" {
			return tag
		}
		t = f.Type
	}
	return ""
}

// decidedAtStart reports whether a change is forbidden while the controller
// runs.
func decidedAtStart(config any, c *KeyChange) bool {
	switch startTag(reflect.TypeOf(config), c.Path) {
	case "":
		return false
	case "file":
		return !slices.Equal(filesIn(c.before), filesIn(c.after))
	}
	return true
}

// filesIn returns the addresses in a value that name files, sorted.
func filesIn(v reflect.Value) (list []string) {
	if !v.IsValid() {
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		if strings.HasPrefix(v.String(), "unix:") {
			list = append(list, v.String())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			list = append(list, filesIn(v.Index(i))...)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			list = append(list, filesIn(it.Value())...)
		}
	}
	slices.Sort(list)
	return list
}

// StartOnly reports programs, files and buses that a plan from the northbound
// would change.
func StartOnly(old, next *plan.Plan, specs []weft.Spec, overrides ...Override) error {
	var errs []error
	if old.Bus != next.Bus {
		errs = append(errs, errors.New("bus: where state is kept is decided at start; leave it as it is, or start the controller again with weft up PLAN"))
	}
	env := map[string]bool{}
	for _, w := range old.Workers {
		for name, value := range w.Env {
			env[name+"="+value] = true
		}
	}
	for _, w := range next.Workers {
		for _, name := range slices.Sorted(maps.Keys(w.Env)) {
			if !env[name+"="+w.Env[name]] {
				errs = append(errs, fmt.Errorf("workers.%s.env.%s: the environment of processes is decided at start, as it chooses which programs they run; take it out, or start the controller again with weft up PLAN", w.Name, name))
			}
		}
		for i := range specs {
			if spec := &specs[i]; spec.Config != nil && slices.Contains(w.Services, spec.Name) {
				errs = append(errs, startOnlyIn(old, next, w.Name, spec, overrides))
			}
		}
	}
	return errors.Join(errs...)
}

// startOnlyIn compares a plan's settings of a service in a worker with those of
// the plan in force, in any worker, or with the defaults if it has none.
// Overrides count there, but not for the new plan, which may outlast them.
func startOnlyIn(old, next *plan.Plan, worker string, spec *weft.Spec, overrides []Override) error {
	after, err := configIn(next, worker, spec)
	if err != nil {
		return err
	}
	var beforeIn []string
	for _, w := range old.Workers {
		if slices.Contains(w.Services, spec.Name) {
			beforeIn = append(beforeIn, w.Name)
		}
	}
	if len(beforeIn) == 0 {
		beforeIn = []string{""} // that of no worker is the defaults
	}
	refused := map[string]string{} // keys that no worker has like that, with their values
	for i, name := range beforeIn {
		for k, set := range [][]Override{nil, overrides} {
			before, err := configIn(old, name, spec, set...)
			if err != nil {
				return err
			}
			now := map[string]string{}
			for _, c := range ChangesOf(before, after) {
				if _, also := refused[c.Key]; decidedAtStart(before, &c) && (also || i+k == 0) {
					now[c.Key] = c.old
				}
			}
			refused = now
		}
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(refused)) {
		errs = append(errs, startError(spec.Name+"."+key, refused[key]))
	}
	return errors.Join(errs...)
}

// configIn returns the configuration of a service in a worker, not validated.
func configIn(p *plan.Plan, worker string, spec *weft.Spec, overrides ...Override) (weft.Config, error) {
	s, err := settingsIn(p, worker, overrides...)
	if err != nil {
		return nil, err
	}
	return s.changed(spec)
}

// startError says that a key is decided at start; value is what it is.
func startError(key, value string) error {
	if value == "" {
		value = "as by default"
	}
	return fmt.Errorf("%s: it names programs or files, so it is decided at start, and stays %s; leave it so here, or start the controller again with another, by --set or in the file of weft up", key, value)
}
